//! Profiles of disks: TOML texts that give every number with its unit and its source.

use crate::disk::Disk;
use crate::drive::{DiskDrive, Electronics};
use crate::layer::Direct;
use crate::layer::LayerShape;
use crate::mechanics::{Geometry, Mechanics, SeekCurve, SeekTimes, Shape, Turn};
use crate::noise::{Noise, NoiseShape};
use crate::numbers;
use crate::profile_error::{ProfileError, must};
use crate::profile_text::{self, parse};
use crate::request::{BLOCK_BYTES, Pba};
use crate::time::Span;
use crate::zoned_disk::{ConventionalPlace, DiskZones, ZonedDisk};
use serde::{Deserialize, Serialize};
use zone::GeometryError;

/// A profile of a disk.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// What it is called.
    pub name: String,
    /// A description in one line.
    pub description: String,
    /// The source of the numbers.
    pub source: String,
    /// Capacity for the host in bytes, rounded down to what the layer can give.
    pub capacity_bytes: u64,
    /// Command overhead, caches and interface.
    pub electronics: Electronics,
    /// Geometry of platters and tracks.
    pub shape: Shape,
    /// Seek times.
    pub seek: SeekTimes,
    /// The translation layer.
    pub layer: LayerShape,
    /// The zones, if the drive is host-managed or host-aware.
    #[serde(default)]
    pub zones: Option<DiskZones>,
    /// Irregular timing; none by default.
    #[serde(default)]
    pub noise: Option<NoiseShape>,
}

static PROFILES: [(&str, &str); 13] = [
    ("seagate-cmr", include_str!("../profiles/seagate-cmr.toml")),
    ("wd5000ys", include_str!("../profiles/wd5000ys.toml")),
    ("hua72303", include_str!("../profiles/hua72303.toml")),
    (
        "emulated-smr-1",
        include_str!("../profiles/emulated-smr-1.toml"),
    ),
    (
        "emulated-smr-2",
        include_str!("../profiles/emulated-smr-2.toml"),
    ),
    (
        "emulated-smr-3",
        include_str!("../profiles/emulated-smr-3.toml"),
    ),
    (
        "st5000as0011",
        include_str!("../profiles/st5000as0011.toml"),
    ),
    (
        "st8000as0002",
        include_str!("../profiles/st8000as0002.toml"),
    ),
    ("st4000lm016", include_str!("../profiles/st4000lm016.toml")),
    ("wd40nmzw", include_str!("../profiles/wd40nmzw.toml")),
    (
        "caveat-scriptor",
        include_str!("../profiles/caveat-scriptor.toml"),
    ),
    ("hm-smr-14tb", include_str!("../profiles/hm-smr-14tb.toml")),
    ("ha-smr-8tb", include_str!("../profiles/ha-smr-8tb.toml")),
];

/// Names of the built-in disks; `flash::names` has the others.
pub fn names() -> Vec<&'static str> {
    PROFILES.iter().map(|(name, _)| *name).collect()
}

/// Text of a built-in profile of a disk.
pub(crate) fn text(name: &str) -> Result<&'static str, ProfileError> {
    profile_text::text(&PROFILES, name)
}

impl Profile {
    /// Parses a profile.
    ///
    /// # Errors
    /// [`ProfileError`], for the text or for a number out of its range. Whether the numbers fit together is checked
    /// when the drive is built.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        parse(text)
    }

    /// Parses a built-in profile.
    ///
    /// # Errors
    /// [`ProfileError::Unknown`].
    pub fn named(name: &str) -> Result<Self, ProfileError> {
        Self::parse(text(name)?)
    }

    /// Builds the drive. The seed decides at what angle its platters are at the start, and its noise.
    ///
    /// # Errors
    /// [`ProfileError`]: a number is out of its range, or the capacity does not fit on the platters.
    pub fn drive(&self, seed: u64) -> Result<DiskDrive, ProfileError> {
        numbers::check_of(self)?;
        self.check_seek()?;
        if let Some(zones) = &self.zones {
            zones.check(self.capacity_bytes)?;
        }
        let geometry = Geometry::new(&self.shape)?;
        if let Some(noise) = &self.noise {
            noise.check(&self.shape, &self.seek)?;
        }
        let seek = SeekCurve::new(&self.seek, geometry.cylinders());
        let settle = Span::from_millis(self.seek.write_settle_ms);
        // With less skew, every track would cost another turn.
        for (field, skew_us, way, what) in [
            (
                "shape.track_skew_us",
                self.shape.track_skew_us,
                seek.seek(1),
                "track",
            ),
            (
                "shape.head_skew_us",
                self.shape.head_skew_us,
                Span::from_millis(self.seek.head_switch_ms),
                "head",
            ),
        ] {
            let least = way + settle;
            must(
                least <= Span::from_micros(skew_us),
                field,
                skew_us,
                format_args!(
                    "at least {}, the way to the next {what} and settling for a write",
                    least.nanos() as f64 / 1e3
                ),
            )?;
        }
        // Any odd factor spreads the seeds over the angles.
        let phase = Turn((seed as u32).wrapping_mul(0x9E37_79B1));
        let disk = Disk::new(Mechanics::new(geometry, seek, phase), 0);
        let blocks = self.capacity_bytes / BLOCK_BYTES;
        let layer = (self.layer).build(&disk, self.capacity_bytes, self.direct(blocks))?;
        let noise = self.noise.clone().map(|shape| Noise::new(shape, seed));
        Ok(DiskDrive::new(disk, layer, self.electronics.clone()).with_noise(noise))
    }

    /// Builds the drive with its zones.
    ///
    /// # Errors
    /// Those of [`drive`](Self::drive), and [`ProfileError::Zones`] if the profile has no zones or impossible ones.
    pub fn zoned(&self, seed: u64) -> Result<ZonedDisk, ProfileError> {
        let shape = self.zones.as_ref();
        let shape = shape.ok_or(ProfileError::Zones(GeometryError::ZoneCount {
            zone_count: 0,
            conventional_zones: 0,
        }))?;
        let drive = self.drive(seed)?;
        let bytes = drive.blocks() * BLOCK_BYTES;
        Ok(ZonedDisk::new(drive, shape.geometry(bytes))?)
    }

    /// The identity mapping, except for conventional zones at the middle diameter.
    fn direct(&self, blocks: u64) -> Direct {
        match &self.zones {
            Some(zones) if zones.conventional_place == ConventionalPlace::Middle => {
                let zone = zones.zone_size_bytes / BLOCK_BYTES;
                let front = u64::from(zones.conventional_zones) * zone;
                let others = (blocks / zone.max(1)).saturating_sub(zones.conventional_zones.into());
                Direct::with_front(blocks, front.min(blocks), Pba(others / 2 * zone))
            }
            _ => Direct::new(blocks),
        }
    }

    /// Checks that a curve that never falls can have the three seek times.
    fn check_seek(&self) -> Result<(), ProfileError> {
        let (least, most) = (self.seek.track_to_track_ms, self.seek.full_stroke_ms);
        must(
            most >= least,
            "seek.full_stroke_ms",
            most,
            format_args!("at least track_to_track_ms, {least}"),
        )?;
        let (from, to) = self.seek.average_range();
        must(
            self.seek.check(),
            "seek.average_ms",
            self.seek.average_ms,
            format_args!(
                "{from:.3} to {to:.3}, a third to eleven fifteenths of the way from track_to_track_ms to \
                 full_stroke_ms"
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_profile_builds_a_drive_of_its_capacity() {
        for name in names() {
            let profile = Profile::named(name).unwrap();
            assert_eq!(profile.name, name);
            let drive = profile.drive(1).unwrap_or_else(|e| panic!("{name}: {e}"));
            let bytes = drive.blocks() * BLOCK_BYTES;
            let lost = profile.capacity_bytes - bytes;
            assert!(lost < profile.capacity_bytes / 50, "{name}: {bytes}");
        }
    }

    #[test]
    fn a_profile_that_cannot_be_says_why() {
        let unknown = Profile::named("none").unwrap_err().to_string();
        assert!(unknown.contains("seagate-cmr"), "{unknown}");
        let mut profile = Profile::named("seagate-cmr").unwrap();
        profile.capacity_bytes *= 2;
        assert!(matches!(
            profile.drive(1).unwrap_err(),
            ProfileError::TooSmall { .. }
        ));
        profile.seek.average_ms = 100.0;
        let error = profile.drive(1).unwrap_err().to_string();
        assert!(error.starts_with("seek.average_ms is 100: "), "{error}");
        profile.electronics.command_us = f64::NAN;
        let error = profile.drive(1).unwrap_err().to_string();
        assert!(error.contains("command_us is NaN: "), "{error}");
        let text = toml::to_string(&Profile::named("st5000as0011").unwrap()).unwrap();
        let misspelt = text.replace("band_tracks", "band_track");
        let error = Profile::parse(&misspelt).unwrap_err().to_string();
        assert!(error.contains("band_track"), "{error}");
    }
}
