//! A drive as a TOML text: every number with its unit, and where it is from.

use crate::any_profile::AnyProfile;
use crate::disk::Disk;
use crate::drive::{Drive, Electronics};
use crate::flash;
use crate::layer::Direct;
pub use crate::layer::LayerShape;
use crate::mechanics::{Geometry, Mechanics, SeekCurve, SeekTimes, Shape, ShapeError, Turn};
use crate::model::Model;
use crate::noise::{Noise, NoiseShape};
use crate::numbers;
use crate::request::{BLOCK_BYTES, Pba};
use crate::time::Span;
use crate::zoned_disk::{ConventionalPlace, DiskZones, ZonedDisk};
use serde::{Deserialize, Serialize};
use std::fmt::Display;
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
    /// What makes its times uneven; nothing if it is missing.
    #[serde(default)]
    pub noise: Option<NoiseShape>,
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
    /// Zones that cannot be.
    #[error("zones: {0}")]
    Zones(#[from] GeometryError),
    /// A number out of its range, or that does not go with the others.
    #[error("{field} is {value}: it must be {must}")]
    Number {
        /// The field, behind its table.
        field: String,
        /// What it was.
        value: String,
        /// What it may be.
        must: String,
    },
    /// It does not fit on its medium.
    #[error(
        "capacity_bytes is {capacity_bytes}: with {beside_bytes} bytes of cache and spare beside it, it \
         must be at most the {room_bytes} bytes that the medium has room for"
    )]
    TooSmall {
        /// What the host would see.
        capacity_bytes: u64,
        /// Cache and spare.
        beside_bytes: u64,
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

pub(crate) fn must(
    ok: bool,
    field: &'static str,
    value: impl Display,
    must: impl Display,
) -> Result<(), ProfileError> {
    if ok {
        return Ok(());
    }
    Err(ProfileError::Number {
        field: field.to_owned(),
        value: value.to_string(),
        must: must.to_string(),
    })
}

/// Reads a profile of any kind, and looks at the range of each number.
pub(crate) fn parse<P: serde::de::DeserializeOwned>(text: &str) -> Result<P, ProfileError> {
    let table: toml::Table = toml::from_str(text).map_err(|error| syntax(text, &error, None))?;
    numbers::check(&table)?;
    toml::from_str(text).map_err(|error| {
        let culprit = culprit::<P>(&table, table_of(text, &error));
        syntax(text, &error, culprit)
    })
}

fn before<'a>(text: &'a str, error: &toml::de::Error) -> &'a str {
    let end = error.span().map_or(0, |span| span.start);
    text.get(..end).unwrap_or_default()
}

/// What the parser says, with the line, and the field if it does not name one itself.
fn syntax(text: &str, error: &toml::de::Error, field: Option<String>) -> ProfileError {
    let line = before(text, error).matches('\n').count() + 1;
    let field = field.map_or_else(String::new, |field| format!("{field}: "));
    let message = error.message().replace('\n', " ");
    ProfileError::Syntax {
        reason: format!("line {line}: {field}{message}"),
    }
}

/// The table in which the parser stopped; none in front of the first.
fn table_of<'a>(text: &'a str, error: &toml::de::Error) -> Option<&'a str> {
    let lines = before(text, error).matches('\n').count() + 1;
    let headers = text.lines().take(lines).filter_map(|line| {
        let name = line.trim().strip_prefix('[')?;
        name.split_once(']').map(|(name, _)| name)
    });
    headers.last()
}

/// The field of a table whose value is of another type than it must be: the one without which the parser
/// has something else to say.
fn culprit<P: serde::de::DeserializeOwned>(
    table: &toml::Table,
    within: Option<&str>,
) -> Option<String> {
    let message = |table: toml::Table| {
        let read: Result<P, toml::de::Error> = toml::Value::Table(table).try_into();
        read.err().map(|error| error.message().to_owned())
    };
    let said = message(table.clone()).filter(|said| !said.contains(" field "))?;
    let fields = numbers::leaves(table).into_iter().map(|(path, _)| path);
    let here = |path: &String| path.rsplit_once('.').map(|(name, _)| name) == within;
    let mut fields: Vec<String> = fields.filter(here).collect();
    // Without its kind a table is none, whatever else is wrong.
    fields.sort_by_key(|path| path.ends_with(".kind"));
    fields.into_iter().find(|path| {
        let other = message(numbers::without(table, path));
        other.as_ref() != Some(&said)
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
    /// Says what is wrong with the text; how numbers go together is looked at when the drive is built.
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

    /// Builds the drive. The seed says at what angle its platters stand at the start, and what noise there is.
    ///
    /// # Errors
    /// A number is out of its range, or all of it does not fit on the platters.
    pub fn drive(&self, seed: u64) -> Result<Drive, ProfileError> {
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
        // Else every track would cost another turn.
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
        // Any odd number spreads the seeds over the angles.
        let phase = Turn((seed as u32).wrapping_mul(0x9E37_79B1));
        let disk = Disk::new(Mechanics::new(geometry, seek, phase), 0);
        let blocks = self.capacity_bytes / BLOCK_BYTES;
        let layer = (self.layer).build(&disk, self.capacity_bytes, self.direct(blocks))?;
        let noise = self.noise.clone().map(|shape| Noise::new(shape, seed));
        Ok(Drive::new(disk, layer, self.electronics.clone()).with_noise(noise))
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

    /// Whether there is a curve through the three times that never falls.
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
