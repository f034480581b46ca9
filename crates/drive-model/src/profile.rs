//! A drive as a TOML text: every number with its unit, and where it is from.

use crate::any_profile::AnyProfile;
use crate::caveat::{CaveatScriptor, CaveatShape};
use crate::disk::Disk;
use crate::drive::{Drive, Electronics};
use crate::flash;
use crate::layer::{
    Direct, FullyAssociative, FullyAssociativeShape, Seagate, SeagateShape, SetAssociative,
    SetAssociativeShape, Translation,
};
use crate::mechanics::{Geometry, Mechanics, SeekCurve, SeekTimes, Shape, ShapeError, Turn};
use crate::model::Model;
use crate::request::{BLOCK_BYTES, Pba};
use crate::time::Span;
use crate::zoned_disk::{ConventionalPlace, DiskZones, ZonedDisk};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use zone::GeometryError;

/// A drive that can be built.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// What it is called.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// Where the numbers are from.
    pub source: String,
    /// Bytes that the host sees, rounded down to what the layer can give.
    pub capacity_bytes: u64,
    /// Command time, caches, interface.
    pub electronics: Electronics,
    /// Platters and tracks.
    pub shape: Shape,
    /// The arm.
    pub seek: SeekTimes,
    /// The translation layer.
    pub layer: LayerShape,
    /// Its zones, if it is host-managed or host-aware.
    #[serde(default)]
    pub zones: Option<DiskZones>,
}

/// A translation layer, as a profile gives it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum LayerShape {
    /// None.
    Conventional,
    /// See [`SetAssociative`].
    SetAssociative(SetAssociativeShape),
    /// See [`FullyAssociative`].
    FullyAssociative(FullyAssociativeShape),
    /// See [`Seagate`].
    Seagate(SeagateShape),
    /// See [`CaveatScriptor`].
    CaveatScriptor(CaveatShape),
}

/// Why a profile is none.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum ProfileError {
    /// The text is not one.
    #[error("not a profile: {reason}")]
    Syntax {
        /// What the parser says.
        reason: String,
    },
    /// No built-in profile of the name.
    #[error("there is no profile '{name}'; there are {}", names().into_iter().chain(flash::names()).collect::<Vec<_>>().join(", "))]
    Unknown {
        /// The name asked for.
        name: String,
    },
    /// A number of the mechanics.
    #[error("shape: {0}")]
    Shape(#[from] ShapeError),
    /// Seek times that no curve goes through.
    #[error(
        "seek: the mean must lie between the shortest and the longest, at a third to three quarters \
         of the way"
    )]
    Seek,
    /// Zones that cannot be.
    #[error("zones: {0}")]
    Zones(#[from] GeometryError),
    /// A number that does not go with the others.
    #[error("{field} must be {must}")]
    Layer {
        /// The field.
        field: &'static str,
        /// What it may be.
        must: &'static str,
    },
    /// It does not fit on its medium.
    #[error("{asked_bytes} bytes are asked for, the medium has room for {room_bytes}")]
    TooSmall {
        /// Capacity, cache and spare.
        asked_bytes: u64,
        /// What tracks or erase blocks give.
        room_bytes: u64,
    },
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

/// The names of the disks that are built in; [`flash::names`] has the others.
pub fn names() -> Vec<&'static str> {
    PROFILES.iter().map(|(name, _)| *name).collect()
}

/// The names of all that are built in, disks and flash.
pub fn all_names() -> Vec<&'static str> {
    [names(), flash::names()].concat()
}

pub(crate) fn must(ok: bool, field: &'static str, must: &'static str) -> Result<(), ProfileError> {
    if ok {
        Ok(())
    } else {
        Err(ProfileError::Layer { field, must })
    }
}

/// Reads a profile of any kind.
pub(crate) fn parse<P: serde::de::DeserializeOwned>(text: &str) -> Result<P, ProfileError> {
    toml::from_str(text).map_err(|error| {
        let before = error.span().map_or(0, |span| span.start);
        let line = text.bytes().take(before).filter(|b| *b == b'\n').count() + 1;
        ProfileError::Syntax {
            reason: format!("line {line}: {}", error.message().replace('\n', " ")),
        }
    })
}

/// The text of a name, out of some.
pub(crate) fn text(all: &[(&str, &'static str)], name: &str) -> Result<&'static str, ProfileError> {
    let found = all.iter().find(|(known, _)| *known == name);
    let unknown = || ProfileError::Unknown { name: name.into() };
    found.map(|(_, text)| *text).ok_or_else(unknown)
}

/// The text of a disk that is built in.
pub(crate) fn disk_text(name: &str) -> Result<&'static str, ProfileError> {
    text(&PROFILES, name)
}

/// Builds the drive of a built-in profile of any kind.
///
/// # Errors
/// There is none of the name.
pub fn model(name: &str, seed: u64) -> Result<Box<dyn Model>, ProfileError> {
    AnyProfile::named(name)?.model(seed)
}

impl Profile {
    /// Reads one.
    ///
    /// # Errors
    /// Says what is wrong with the text; numbers are looked at when the drive is built.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        parse(text)
    }

    /// One that is built in.
    ///
    /// # Errors
    /// There is none of the name.
    pub fn named(name: &str) -> Result<Self, ProfileError> {
        Self::parse(disk_text(name)?)
    }

    /// Builds the drive. The seed says at what angle its platters stand at the start.
    ///
    /// # Errors
    /// A number is out of its range, or all of it does not fit on the platters.
    pub fn drive(&self, seed: u64) -> Result<Drive, ProfileError> {
        if !self.seek.check() {
            return Err(ProfileError::Seek);
        }
        let geometry = Geometry::new(&self.shape)?;
        let room = geometry.blocks();
        let seek = SeekCurve::new(&self.seek, geometry.cylinders());
        let settle = Span::from_millis(self.seek.write_settle_ms);
        let next_track = seek.seek(1) + settle;
        let next_head = Span::from_millis(self.seek.head_switch_ms) + settle;
        must(
            next_track <= Span::from_micros(self.shape.track_skew_us)
                && next_head <= Span::from_micros(self.shape.head_skew_us),
            "track_skew_us, head_skew_us",
            "as long as the way to the next track or head and settling for a write take, or every \
             track would cost another turn",
        )?;
        // Any odd number spreads the seeds over the angles.
        let phase = Turn((seed as u32).wrapping_mul(0x9E37_79B1));
        let disk = Disk::new(Mechanics::new(geometry, seek, phase), 0);
        let blocks = self.capacity_bytes / BLOCK_BYTES;
        let (layer, physical) = self.layer(&disk, blocks)?;
        if physical > room || blocks == 0 {
            return Err(ProfileError::TooSmall {
                asked_bytes: physical * BLOCK_BYTES,
                room_bytes: room * BLOCK_BYTES,
            });
        }
        // Maps name blocks with 32 bits.
        must(
            blocks <= u64::from(u32::MAX),
            "capacity_bytes",
            "16 TiB at most",
        )?;
        Ok(Drive::new(disk, layer, self.electronics.clone()))
    }

    /// Builds the drive with its zones.
    ///
    /// # Errors
    /// What [`drive`](Self::drive) says, or zones that cannot be, among them none.
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

    /// Logical blocks where they are, but for conventional zones that lie elsewhere.
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

    fn layer(&self, disk: &Disk, blocks: u64) -> Result<(Translation, u64), ProfileError> {
        Ok(match &self.layer {
            LayerShape::Conventional => (Translation::Direct(self.direct(blocks)), blocks),
            LayerShape::CaveatScriptor(shape) => {
                must(
                    shape.drive_no_overlap_range <= shape.drive_isolation_distance
                        && shape.drive_isolation_distance < blocks,
                    "drive_no_overlap_range, drive_isolation_distance",
                    "the first at most the second, and that less than the disk",
                )?;
                let layer = CaveatScriptor::new(*shape, blocks);
                (Translation::CaveatScriptor(layer), blocks)
            }
            LayerShape::SetAssociative(shape) => {
                let band = u64::from(shape.band_blocks);
                must(band > 0 && band <= blocks, "band_blocks", "1 to all blocks")?;
                must(shape.cache_bands > 0, "cache_bands", "at least 1")?;
                let layer = SetAssociative::new(shape, blocks);
                let physical = layer.physical_blocks();
                (Translation::SetAssociative(layer), physical)
            }
            LayerShape::FullyAssociative(shape) => {
                let zone = u64::from(shape.band_blocks) * u64::from(shape.zone_data_bands);
                must(shape.band_blocks > 0, "band_blocks", "at least 1")?;
                must(
                    zone > 0 && zone <= blocks,
                    "zone_data_bands",
                    "at least 1, and a zone not larger than the drive",
                )?;
                must(shape.zone_cache_bands > 1, "zone_cache_bands", "at least 2")?;
                must(shape.zone_free_bands > 1, "zone_free_bands", "at least 2")?;
                must(
                    shape.map_extents.is_none_or(|most| most >= 64),
                    "map_extents",
                    "64 or more, if it is given",
                )?;
                let physical = FullyAssociative::physical_blocks(shape, blocks);
                let layer = FullyAssociative::new(shape, blocks);
                (Translation::FullyAssociative(layer), physical)
            }
            LayerShape::Seagate(shape) => {
                must(
                    shape.half_track_payload_blocks > 0,
                    "half_track_payload_blocks",
                    "at least 1",
                )?;
                must(
                    shape.entry_max_half_tracks > 0,
                    "entry_max_half_tracks",
                    "at least 1",
                )?;
                must(
                    shape.entry_max_half_tracks < 1 << 16
                        && shape.out_of_band_half_tracks < 1 << 16,
                    "entry_max_half_tracks",
                    "less than 65,536, like out_of_band_half_tracks",
                )?;
                let entry = shape.entry_max_half_tracks + shape.out_of_band_half_tracks;
                must(
                    shape.cache_half_tracks >= 2 * entry && shape.cache_half_tracks < 1 << 31,
                    "cache_half_tracks",
                    "two of the longest entries or more",
                )?;
                let payload = shape.entry_max_half_tracks * shape.half_track_payload_blocks;
                must(
                    shape.cache_payload_blocks >= payload,
                    "cache_payload_blocks",
                    "the longest entry's payload or more",
                )?;
                must(shape.map_extents >= 64, "map_extents", "64 or more")?;
                must(
                    shape.map_merge_entries > 0,
                    "map_merge_entries",
                    "at least 1",
                )?;
                must(shape.band_tracks > 0, "band_tracks", "at least 1")?;
                let cache = disk.blocks() - Seagate::room(shape, disk);
                let layer = Seagate::new(shape, blocks, disk);
                (Translation::Seagate(Box::new(layer)), blocks + cache)
            }
        })
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
        assert_eq!(profile.drive(1).unwrap_err(), ProfileError::Seek);
        let text = toml::to_string(&Profile::named("st5000as0011").unwrap()).unwrap();
        let misspelt = text.replace("band_tracks", "band_track");
        let error = Profile::parse(&misspelt).unwrap_err().to_string();
        assert!(error.contains("band_track"), "{error}");
    }
}
