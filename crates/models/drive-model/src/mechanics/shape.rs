//! The geometry of a disk, as in a profile.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Direction of the strokes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stroke {
    /// Inwards on one surface and outwards on the next.
    Alternating,
    /// Always from the outside in.
    Inwards,
    /// Inwards in the outer half and outwards in the inner half: what the main document saw of
    /// Seagate's drive (figure 2.25).
    TowardsMiddle,
}

/// The geometry of a disk, as in a profile.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// Turns a minute.
    pub rpm: u32,
    /// Surfaces with a head each, 1 to 64.
    pub heads: u32,
    /// Number of tracks on a surface.
    pub cylinders: u32,
    /// Recording zones: runs of cylinders with tracks of one length.
    pub recording_zones: u32,
    /// Ratio of the cylinders of the innermost recording zone to those of the outermost; those between change in
    /// equal steps. By default all have the same number.
    #[serde(default = "alike")]
    pub innermost_zone_width: f64,
    /// Blocks of 4 KiB in a track of the outermost recording zone.
    pub outer_track_blocks: u32,
    /// Blocks of 4 KiB in a track of the innermost recording zone; those between are interpolated at their middle.
    pub inner_track_blocks: u32,
    /// Number of tracks in a stroke; no stroke goes beyond its recording zone.
    pub stroke_tracks: u32,
    /// Direction of the strokes.
    pub stroke: Stroke,
    /// Share of the cylinders, around the middle one, in whose recording zones strokes alternate in direction
    /// whatever `stroke` says; none by default.
    #[serde(default)]
    pub serpentine_part: f64,
    /// Density of each surface relative to the nominal track length (adaptive formatting); 1 for all if empty.
    #[serde(default)]
    pub head_density: Vec<f64>,
    /// Microseconds between the end of a track and the start of the next one on the surface.
    pub track_skew_us: f64,
    /// Microseconds between the end of a track and the start of the next one on another surface.
    pub head_skew_us: f64,
}

const fn alike() -> f64 {
    1.0
}

/// Why a geometry is impossible.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum ShapeError {
    /// A number is out of its range.
    #[error("{field} is {value}: it must be {must}")]
    Range {
        /// The field.
        field: &'static str,
        /// Its value.
        value: f64,
        /// The range, in words.
        must: &'static str,
    },
}

fn range(
    ok: bool,
    field: &'static str,
    value: impl Into<f64>,
    must: &'static str,
) -> Result<(), ShapeError> {
    let value = value.into();
    if ok {
        Ok(())
    } else {
        Err(ShapeError::Range { field, value, must })
    }
}

impl Shape {
    /// The outer edge of a recording zone, in widths of the outermost one.
    fn edge(&self, zone: u32) -> f64 {
        let (zone, steps) = (f64::from(zone), f64::from(self.recording_zones.max(2) - 1));
        zone + (self.innermost_zone_width - 1.0) * zone * (zone - 1.0) / (2.0 * steps)
    }

    /// The middle of a recording zone, in widths of the outermost one.
    fn middle(&self, zone: u32) -> f64 {
        f64::midpoint(self.edge(zone), self.edge(zone + 1))
    }

    /// Depth of the middle of a recording zone, from 0 (outermost) to 1.
    pub(super) fn depth(&self, zone: u32) -> f64 {
        self.middle(zone) / self.edge(self.recording_zones)
    }

    /// The outermost cylinder of a recording zone; for the index after the last one, the number of cylinders.
    pub(super) fn first_cylinder(&self, zone: u32) -> u32 {
        if zone == self.recording_zones {
            return self.cylinders;
        }
        let all = f64::from(self.cylinders);
        (all * self.edge(zone) / self.edge(self.recording_zones)) as u32
    }

    /// Blocks of a track in a recording zone, on a surface of nominal density.
    pub(super) fn track_blocks(&self, zone: u32) -> f64 {
        let (outermost, innermost) = (self.middle(0), self.middle(self.recording_zones - 1));
        let part = if self.recording_zones == 1 {
            0.0
        } else {
            (self.middle(zone) - outermost) / (innermost - outermost)
        };
        let outer = f64::from(self.outer_track_blocks);
        outer + (f64::from(self.inner_track_blocks) - outer) * part
    }

    pub(super) fn check(&self) -> Result<(), ShapeError> {
        let rpm = self.rpm;
        range((60..=60_000).contains(&rpm), "rpm", rpm, "60 to 60,000")?;
        range(
            (1..=64).contains(&self.heads),
            "heads",
            self.heads,
            "1 to 64",
        )?;
        range(
            (1..=10_000_000).contains(&self.cylinders),
            "cylinders",
            self.cylinders,
            "1 to 10,000,000",
        )?;
        range(
            (1..=self.cylinders.min(10_000)).contains(&self.recording_zones),
            "recording_zones",
            self.recording_zones,
            "at least 1, at most as many as there are cylinders",
        )?;
        let width = self.innermost_zone_width;
        let narrowest = (self.edge(1) * width.min(1.0)) / self.edge(self.recording_zones);
        range(
            // At least two cylinders, so that rounding leaves one.
            (0.05..=20.0).contains(&width)
                && (width == 1.0 || narrowest * f64::from(self.cylinders) >= 2.0),
            "innermost_zone_width",
            width,
            "0.05 to 20, and leave every recording zone two cylinders",
        )?;
        let part = self.serpentine_part;
        range(
            (0.0..=1.0).contains(&part),
            "serpentine_part",
            part,
            "0 to 1",
        )?;
        for (field, blocks) in [
            ("outer_track_blocks", self.outer_track_blocks),
            ("inner_track_blocks", self.inner_track_blocks),
        ] {
            range(
                (1..=1 << 20).contains(&blocks),
                field,
                blocks,
                "1 to 1,048,576",
            )?;
        }
        range(
            self.stroke_tracks > 0,
            "stroke_tracks",
            self.stroke_tracks,
            "at least 1",
        )?;
        range(
            self.head_density.is_empty() || self.head_density.len() == self.heads as usize,
            "head_density",
            self.head_density.len() as f64,
            "empty, or one number for each head",
        )?;
        for density in &self.head_density {
            range(
                (0.1..=10.0).contains(density),
                "head_density",
                *density,
                "0.1 to 10",
            )?;
        }
        let turn_us = 60e6 / f64::from(self.rpm);
        for (field, skew) in [
            ("track_skew_us", self.track_skew_us),
            ("head_skew_us", self.head_skew_us),
        ] {
            range(
                (0.0..turn_us).contains(&skew),
                field,
                skew,
                "0 or more, and less than a turn",
            )?;
        }
        Ok(())
    }
}
