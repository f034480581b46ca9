//! Positions of physical blocks: recording zones, surfaces, tracks, and the angle at which each track begins.
//!
//! Blocks are numbered in the order in which the drive reads them fastest. A *stroke* is a run of
//! tracks on one surface; after it the next surface's tracks of the same cylinders follow. Strokes
//! of a few tracks are the serpentine layout of conventional drives, strokes of thousands that of
//! the shingled drives in the main document, section 2.4.12.

use super::shape::{Shape, ShapeError, Stroke};
use crate::request::{BLOCK_BYTES, Pba};
use crate::time::Span;
use serde::{Deserialize, Serialize};

/// An angle, in 2⁻³² turns; sums wrap as turns do.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Turn(pub u32);

/// A track, with everything that a request for one of its blocks needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Track {
    /// Its cylinder; the outermost is 0.
    pub cylinder: u32,
    /// Its surface.
    pub head: u32,
    /// Its first block.
    pub first: Pba,
    /// Number of blocks on it.
    pub blocks: u32,
    /// Angle of its first block.
    pub start: Turn,
}

/// The position of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its track.
    pub track: Track,
    /// Index of the block on the track.
    pub index: u32,
}

/// Direction of the strokes of a recording zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Way {
    Inwards,
    Outwards,
    /// The strokes of one group run inwards, those of the next one outwards.
    ToAndFro,
}

impl Way {
    /// The direction in the recording zone whose middle lies at `depth`, from 0 (outermost) to 1.
    fn of(shape: &Shape, depth: f64) -> Self {
        let serpentine = (depth - 0.5).abs() < shape.serpentine_part / 2.0;
        match shape.stroke {
            Stroke::Alternating => Self::ToAndFro,
            _ if serpentine => Self::ToAndFro,
            Stroke::TowardsMiddle if depth > 0.5 => Self::Outwards,
            Stroke::TowardsMiddle | Stroke::Inwards => Self::Inwards,
        }
    }
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct RecordingZone {
    first: u64,
    blocks: u64,
    first_cylinder: u32,
    cylinders: u32,
    /// Blocks of a track, by surface.
    tracks: Vec<u32>,
    /// Blocks of one track on every surface together.
    all_tracks: u64,
    /// Number of strokes and tracks before this zone, which give the sum of skews.
    strokes_before: u64,
    tracks_before: u64,
    /// Number of tracks in a stroke.
    stroke_tracks: u32,
    way: Way,
}

/// The positions of all blocks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Geometry {
    zones: Vec<RecordingZone>,
    heads: u32,
    cylinders: u32,
    rotation: Span,
    track_skew: u32,
    head_skew: u32,
}

impl Geometry {
    /// Computes the positions.
    ///
    /// # Errors
    /// [`ShapeError`]: a number of the shape is out of its range.
    pub fn new(shape: &Shape) -> Result<Self, ShapeError> {
        shape.check()?;
        let rotation = Span::from_seconds(60.0 / f64::from(shape.rpm));
        let turns = |us: f64| (us * 1e3 / rotation.nanos() as f64 * 2f64.powi(32)) as u32;
        let mut zones: Vec<RecordingZone> = Vec::with_capacity(shape.recording_zones as usize);
        let (mut first, mut strokes_before, mut tracks_before) = (0, 0, 0);
        for index in 0..shape.recording_zones {
            let first_cylinder = shape.first_cylinder(index);
            let nominal = shape.track_blocks(index);
            let tracks: Vec<u32> = (0..shape.heads as usize)
                .map(|head| shape.head_density.get(head).copied().unwrap_or(1.0))
                .map(|density| ((nominal * density).round() as u32).max(1))
                .collect();
            let all_tracks: u64 = tracks.iter().map(|blocks| u64::from(*blocks)).sum();
            let cylinders = shape.first_cylinder(index + 1) - first_cylinder;
            let zone = RecordingZone {
                first,
                blocks: all_tracks * u64::from(cylinders),
                first_cylinder,
                cylinders,
                tracks,
                all_tracks,
                strokes_before,
                tracks_before,
                stroke_tracks: shape.stroke_tracks.min(cylinders),
                way: Way::of(shape, shape.depth(index)),
            };
            first += zone.blocks;
            let groups = u64::from(cylinders.div_ceil(zone.stroke_tracks));
            strokes_before += groups * u64::from(shape.heads);
            tracks_before += u64::from(cylinders) * u64::from(shape.heads);
            zones.push(zone);
        }
        Ok(Self {
            zones,
            heads: shape.heads,
            cylinders: shape.cylinders,
            rotation,
            track_skew: turns(shape.track_skew_us),
            head_skew: turns(shape.head_skew_us),
        })
    }

    /// Number of blocks on all surfaces.
    pub fn blocks(&self) -> u64 {
        self.zones.last().map_or(0, |zone| zone.first + zone.blocks)
    }

    /// Number of tracks on a surface.
    pub const fn cylinders(&self) -> u32 {
        self.cylinders
    }

    /// Number of surfaces.
    pub const fn heads(&self) -> u32 {
        self.heads
    }

    /// Duration of a turn.
    pub const fn rotation(&self) -> Span {
        self.rotation
    }

    /// The position of a block. A block after the last one has the position of the last one.
    pub fn place(&self, pba: Pba) -> Place {
        let pba = pba.0.min(self.blocks() - 1);
        self.place_in(self.zone(pba), pba)
    }

    /// The recording zone of an existing block.
    fn zone(&self, pba: u64) -> &RecordingZone {
        let behind = self.zones.partition_point(|zone| zone.first <= pba);
        &self.zones[behind - 1]
    }

    fn place_in(&self, zone: &RecordingZone, pba: u64) -> Place {
        let within = pba - zone.first;
        let stroke = u64::from(zone.stroke_tracks);
        let group_blocks = zone.all_tracks * stroke;
        let group = within / group_blocks;
        let mut rest = within % group_blocks;
        // The last group of a recording zone may be narrower.
        let width = stroke.min(u64::from(zone.cylinders) - group * stroke);
        // One group goes down through the surfaces, the next one up, across recording zones too.
        let groups = zone.strokes_before / u64::from(self.heads) + group;
        let (mut position, mut head) = (0, 0);
        for index in 0..self.heads {
            position = index;
            head = if groups.is_multiple_of(2) {
                index
            } else {
                self.heads - 1 - index
            };
            let blocks = u64::from(zone.tracks[head as usize]) * width;
            if rest < blocks || index == self.heads - 1 {
                break;
            }
            rest -= blocks;
        }
        let blocks = zone.tracks[head as usize];
        let track = rest / u64::from(blocks);
        let index = (rest % u64::from(blocks)) as u32;
        let back = zone.way == Way::ToAndFro && position % 2 == 1;
        let offset = if back { width - 1 - track } else { track };
        let from_outside = (group * stroke + offset) as u32;
        let cylinder = if zone.way == Way::Outwards {
            zone.first_cylinder + zone.cylinders - 1 - from_outside
        } else {
            zone.first_cylinder + from_outside
        };
        let strokes = zone.strokes_before + group * u64::from(self.heads) + u64::from(position);
        let tracks = zone.tracks_before
            + group * stroke * u64::from(self.heads)
            + u64::from(position) * width
            + track;
        // Every track begins one track skew after the previous one, the first track of a stroke one head skew after
        // it.
        let start = (tracks as u32).wrapping_mul(self.track_skew).wrapping_add(
            (strokes as u32).wrapping_mul(self.head_skew.wrapping_sub(self.track_skew)),
        );
        Place {
            track: Track {
                cylinder,
                head,
                first: Pba(pba - u64::from(index)),
                blocks,
                start: Turn(start),
            },
            index,
        }
    }

    /// Bytes a second of a long sequential read around a block, in closed form: the blocks of a stroke over its turns
    /// and skews.
    pub fn sequential_bytes_per_second(&self, pba: Pba) -> f64 {
        let track = self.place(pba).track;
        let skew = |turn: u32| f64::from(turn) / 2f64.powi(32);
        let tracks = f64::from(self.zone(track.first.0).stroke_tracks);
        let turns = tracks + skew(self.track_skew) * (tracks - 1.0) + skew(self.head_skew);
        let bytes = f64::from(track.blocks) * tracks * BLOCK_BYTES as f64;
        bytes / (turns * self.rotation.seconds())
    }

    /// The recording zones, outermost first.
    pub fn recording_zones(&self) -> impl Iterator<Item = RecordingZoneShare> + '_ {
        let all = self.blocks() as f64;
        self.zones.iter().map(move |zone| RecordingZoneShare {
            first: Pba(zone.first),
            blocks: zone.blocks,
            first_cylinder: zone.first_cylinder,
            cylinders: zone.cylinders,
            share: zone.blocks as f64 / all,
            track_blocks: zone.all_tracks as f64 / f64::from(self.heads),
        })
    }
}

/// A recording zone, weighted by the share of blocks that it has.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RecordingZoneShare {
    /// Its first block.
    pub first: Pba,
    /// Number of blocks.
    pub blocks: u64,
    /// Its outermost cylinder.
    pub first_cylinder: u32,
    /// Number of cylinders.
    pub cylinders: u32,
    /// Share of all blocks, from 0 to 1.
    pub share: f64,
    /// Blocks of a track, averaged over the surfaces.
    pub track_blocks: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn shape(stroke: Stroke, stroke_tracks: u32, heads: u32) -> Shape {
        Shape {
            rpm: 6000,
            heads,
            cylinders: 23,
            recording_zones: 3,
            innermost_zone_width: 1.0,
            outer_track_blocks: 8,
            inner_track_blocks: 4,
            stroke_tracks,
            stroke,
            serpentine_part: 0.0,
            head_density: Vec::new(),
            track_skew_us: 1000.0,
            head_skew_us: 2000.0,
        }
    }

    proptest! {
        #[test]
        fn every_block_has_a_place_of_its_own(
            stroke in prop_oneof![Just(Stroke::Alternating), Just(Stroke::Inwards), Just(Stroke::TowardsMiddle)],
            stroke_tracks in 1u32..30,
            heads in 1u32..5,
            dense in any::<bool>(),
            (recording_zones, innermost_zone_width) in prop_oneof![
                Just((3, 1.0)), Just((3, 0.4)), Just((3, 2.5)), Just((1, 0.4)), Just((6, 0.5)),
            ],
            serpentine_part in prop_oneof![Just(0.0), 0.0..1.0],
        ) {
            let mut shape = shape(stroke, stroke_tracks, heads);
            (shape.recording_zones, shape.innermost_zone_width) =
                (recording_zones, innermost_zone_width);
            shape.serpentine_part = serpentine_part;
            if dense {
                shape.head_density = (0..heads).map(|h| 1.0 + f64::from(h) / 4.0).collect();
            }
            let g = Geometry::new(&shape).unwrap();
            let mut seen = HashSet::new();
            let mut tracks = HashSet::new();
            for pba in 0..g.blocks() {
                let Place { track, index } = g.place(Pba(pba));
                prop_assert_eq!(track.first.0 + u64::from(index), pba);
                prop_assert!(index < track.blocks);
                prop_assert!(track.cylinder < 23 && track.head < heads);
                prop_assert!(seen.insert((track.cylinder, track.head, index)));
                tracks.insert((track.cylinder, track.head));
            }
            prop_assert_eq!(tracks.len() as u32, 23 * heads);
        }
    }

    #[test]
    fn tracks_follow_each_other_at_their_skews() {
        let g = Geometry::new(&shape(Stroke::Alternating, 3, 2)).unwrap();
        let mut last = g.place(Pba(0)).track;
        while let next = g.place(last.first.plus(u64::from(last.blocks))).track
            && next != last
        {
            let skew = if next.head == last.head && next.cylinder.abs_diff(last.cylinder) == 1 {
                0.1
            } else {
                0.2
            };
            let between = next.start.0.wrapping_sub(last.start.0);
            let behind_group = next.head == last.head;
            let between = f64::from(between) / 2f64.powi(32);
            assert!(
                (between - skew).abs() < 1e-6 || behind_group && (between - 0.2).abs() < 1e-6,
                "{last:?} {next:?}"
            );
            last = next;
            if last.first.0 + u64::from(last.blocks) >= g.blocks() {
                break;
            }
        }
    }

    #[test]
    fn strokes_run_as_they_are_called() {
        let cylinders = |stroke| {
            let g = Geometry::new(&shape(stroke, 3, 2)).unwrap();
            let mut all: Vec<u32> = (0..g.blocks())
                .map(|b| g.place(Pba(b)).track.cylinder)
                .collect();
            all.dedup();
            all
        };
        // The same track on the other surface is one entry.
        assert_eq!(
            cylinders(Stroke::Alternating)[..8],
            [0, 1, 2, 1, 0, 3, 4, 5]
        );
        assert_eq!(cylinders(Stroke::Inwards)[..8], [0, 1, 2, 0, 1, 2, 3, 4]);
        let middle = cylinders(Stroke::TowardsMiddle);
        assert_eq!(middle[..3], [0, 1, 2]);
        assert_eq!(
            middle.last(),
            Some(&15),
            "the inner zone is read from the spindle outwards"
        );
    }

    #[test]
    fn recording_zones_become_narrower_inwards_in_equal_steps() {
        let mut shape = shape(Stroke::Inwards, 1_000_000, 2);
        (shape.cylinders, shape.recording_zones) = (70_000, 7);
        shape.innermost_zone_width = 0.4;
        (shape.outer_track_blocks, shape.inner_track_blocks) = (800, 200);
        let g = Geometry::new(&shape).unwrap();
        let widths: Vec<u32> = g.recording_zones().map(|zone| zone.cylinders).collect();
        // 1.0, 0.9 … 0.4 of 4.9, and those that rounding down leaves over.
        let steps: Vec<u32> = widths
            .windows(2)
            .map(|pair| (pair[0] - pair[1]) / 100)
            .collect();
        assert_eq!(widths.iter().sum::<u32>(), 70_000);
        assert_eq!(widths[0], 14_285);
        assert!(widths[6].abs_diff(5_714) <= 1, "{widths:?}");
        assert_eq!(steps, [14; 6], "{widths:?}");
        // By where its middle is, the fourth is more than half way.
        let tracks: Vec<f64> = g.recording_zones().map(|zone| zone.track_blocks).collect();
        assert_eq!(tracks, [800.0, 664.0, 543.0, 436.0, 343.0, 264.0, 200.0]);
        // A stroke is all of a recording zone.
        for zone in g.recording_zones() {
            let end = g.place(Pba(zone.first.0 + zone.blocks / 2 - 1)).track;
            assert_eq!(end.head, g.place(zone.first).track.head);
            assert_eq!(end.cylinder, zone.first_cylinder + zone.cylinders - 1);
        }
    }

    #[test]
    fn all_recording_zones_are_alike_if_nothing_else_is_said() {
        for (cylinders, recording_zones) in [(23, 3), (416_000, 43), (1_000_003, 997)] {
            let mut shape = shape(Stroke::TowardsMiddle, 3, 1);
            (shape.cylinders, shape.recording_zones) = (cylinders, recording_zones);
            (shape.outer_track_blocks, shape.inner_track_blocks) = (512, 243);
            let g = Geometry::new(&shape).unwrap();
            let (all, count) = (u64::from(cylinders), u64::from(recording_zones));
            for (zone, index) in g.zones.iter().zip(0u64..) {
                assert_eq!(u64::from(zone.first_cylinder), all * index / count);
                let part = index as f64 / (count - 1) as f64;
                assert_eq!(
                    zone.tracks,
                    [(512.0 + (243.0 - 512.0) * part).round() as u32]
                );
                assert_eq!(zone.way == Way::Inwards, index * 2 < count, "{index}");
            }
        }
    }

    #[test]
    fn around_the_middle_strokes_may_run_to_and_fro() {
        let mut shape = shape(Stroke::TowardsMiddle, 1_000, 2);
        (shape.cylinders, shape.recording_zones) = (10_000, 10);
        shape.serpentine_part = 0.21;
        let g = Geometry::new(&shape).unwrap();
        for (zone, index) in g.recording_zones().zip(0..) {
            let first = zone.first_cylinder;
            let last = first + zone.cylinders - 1;
            let half = zone.blocks / 2;
            // Where each of the two strokes begins and ends.
            let ends = [0, half - 1, half, zone.blocks - 1]
                .map(|block| g.place(zone.first.plus(block)).track.cylinder);
            let expected = match index {
                0..4 => [first, last, first, last],
                4 | 5 => [first, last, last, first],
                _ => [last, first, last, first],
            };
            assert_eq!(ends, expected, "{index}");
        }
    }

    #[test]
    fn a_shape_that_cannot_be_says_which_number() {
        let wrong = |change: fn(&mut Shape)| {
            let mut shape = shape(Stroke::Inwards, 3, 2);
            change(&mut shape);
            Geometry::new(&shape).unwrap_err().to_string()
        };
        assert!(wrong(|s| s.rpm = 0).starts_with("rpm is 0"));
        assert!(wrong(|s| s.heads = 0).starts_with("heads"));
        assert!(wrong(|s| s.recording_zones = 24).starts_with("recording_zones"));
        assert!(wrong(|s| s.innermost_zone_width = f64::NAN).starts_with("innermost_zone_width"));
        assert!(wrong(|s| s.innermost_zone_width = 0.05).starts_with("innermost_zone_width"));
        assert!(wrong(|s| s.serpentine_part = 1.5).starts_with("serpentine_part is 1.5"));
        assert!(wrong(|s| s.outer_track_blocks = 0).starts_with("outer_track_blocks"));
        assert!(wrong(|s| s.head_density = vec![1.0]).starts_with("head_density"));
        assert!(wrong(|s| s.track_skew_us = f64::NAN).starts_with("track_skew_us"));
        assert!(wrong(|s| s.head_skew_us = 10_000.0).starts_with("head_skew_us"));
    }
}
