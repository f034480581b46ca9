//! Profiles of all kinds of drives, built in or from the text of a file.

use crate::BLOCK_BYTES;
use crate::disk_profile;
pub use crate::disk_profile::{Profile, names};
use crate::drive::DiskDrive;
use crate::flash::{self, FlashDrive, FlashProfile, ManagementShape};
pub use crate::layer::LayerShape;
use crate::model::Model;
pub use crate::profile_error::ProfileError;
use crate::profile_text::parse;
use crate::saved::{self, StateError};
use crate::zoned_disk::ZonedDisk;
use crc_fast::CrcAlgorithm;
use serde::Serialize;
use std::borrow::Cow;
use zone::{Geometry, ZoneKind};

/// Names of all built-in profiles, of disks and of flash drives.
pub fn all_names() -> Vec<&'static str> {
    [names(), flash::names()].concat()
}

/// A kind of drive that can be created with zones, or modelled, or both.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DriveKind {
    /// Default size of a drive with zones, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_size_bytes: Option<u64>,
    /// Default size of its zones, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_zone_size: Option<u64>,
    /// A description in one line.
    pub description: String,
    /// Whether there is a model.
    pub model: bool,
    /// What it is called.
    pub name: &'static str,
    /// Whether drives with zones can be created.
    pub zones: bool,
}

const fn word(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

fn table(head: [&str; 4], rows: impl Iterator<Item = [String; 4]>) -> Vec<Vec<String>> {
    let head = head.map(str::to_owned);
    std::iter::once(head).chain(rows).map(Vec::from).collect()
}

impl DriveKind {
    /// A table for people, with a head.
    pub fn rows(kinds: &[Self]) -> Vec<Vec<String>> {
        let row = |kind: &Self| {
            let cells = [
                kind.name,
                word(kind.zones),
                word(kind.model),
                &kind.description,
            ];
            cells.map(str::to_owned)
        };
        table(["name", "zones", "model", ""], kinds.iter().map(row))
    }
}

/// The kinds with zones, followed by the models of others.
///
/// # Errors
/// None is expected: built-in profiles can be parsed.
pub fn kinds() -> Result<Vec<DriveKind>, ProfileError> {
    let models = all_names();
    let zoned = device::profile::all().iter().map(|profile| DriveKind {
        default_size_bytes: Some(profile.default_size_bytes),
        default_zone_size: Some(profile.default_zone_size),
        description: profile.description.to_owned(),
        model: models.contains(&profile.name),
        name: profile.name,
        zones: true,
    });
    let mut kinds: Vec<_> = zoned.collect();
    for name in &models {
        if device::profile::by_name(name).is_err() {
            kinds.push(DriveKind {
                default_size_bytes: None,
                default_zone_size: None,
                description: AnyProfile::named(name)?.description().to_owned(),
                model: true,
                name,
                zones: false,
            });
        }
    }
    Ok(kinds)
}

/// A built-in model.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ModelKind {
    /// Bytes of the drive.
    pub bytes: u64,
    /// The name of its [`Class`].
    pub class: &'static str,
    /// A description in one line.
    pub description: String,
    /// Whether it can be exported as a block device.
    pub exported: bool,
    /// What it is called.
    pub name: &'static str,
}

impl ModelKind {
    /// A table for people, with a head.
    pub fn rows(models: &[Self]) -> Vec<Vec<String>> {
        let row = |model: &Self| {
            let cells = [
                model.name,
                model.class,
                word(model.exported),
                &model.description,
            ];
            cells.map(str::to_owned)
        };
        table(["name", "class", "export", ""], models.iter().map(row))
    }
}

/// All built-in models.
///
/// # Errors
/// None is expected: built-in profiles can be parsed.
pub fn models() -> Result<Vec<ModelKind>, ProfileError> {
    let model = |name| {
        let profile = AnyProfile::named(name)?;
        Ok(ModelKind {
            bytes: profile.model(1)?.blocks() * BLOCK_BYTES,
            class: profile.class().name(),
            description: profile.description().to_owned(),
            exported: profile.class().takes_any_write(),
            name,
        })
    };
    all_names().into_iter().map(model).collect()
}

/// Builds the drive of a built-in profile.
///
/// # Errors
/// [`ProfileError::Unknown`].
pub fn model(name: &str, seed: u64) -> Result<Box<dyn Model>, ProfileError> {
    AnyProfile::named(name)?.model(seed)
}

/// Class of a drive: the rules that a host has to know before it writes to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// A disk whose tracks do not overlap.
    Conventional,
    /// A shingled disk behind a translation layer.
    DriveManaged,
    /// A shingled disk behind a translation layer, whose zones tell which writes it prefers.
    HostAware,
    /// A shingled disk with zones that have to be written in order.
    HostManaged,
    /// A shingled disk whose host has to know which blocks a write damages.
    CaveatScriptor,
    /// Flash behind a translation layer.
    Flash,
    /// Flash with zones that have to be written in order.
    Zns,
}

impl Class {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Conventional => "conventional",
            Self::DriveManaged => "drive-managed",
            Self::HostAware => "host-aware",
            Self::HostManaged => "host-managed",
            Self::CaveatScriptor => "caveat-scriptor",
            Self::Flash => "flash",
            Self::Zns => "zns",
        }
    }

    /// Whether the drive works as an ordinary block device: any block may be written at any time, and can be read
    /// back.
    pub const fn takes_any_write(self) -> bool {
        self.why_no_block_device().is_none()
    }

    /// Why the drive does not work as an ordinary block device; `None` if it does.
    pub const fn why_no_block_device(self) -> Option<&'static str> {
        match self {
            Self::HostManaged | Self::Zns => {
                Some("it has zones that are written in order, and NBD has no zones")
            }
            Self::CaveatScriptor => {
                Some("a write damages what lies behind it, and NBD cannot say so")
            }
            _ => None,
        }
    }
}

/// A profile of a disk or of a flash drive.
#[derive(Clone, PartialEq, Debug)]
pub struct AnyProfile {
    text: Cow<'static, str>,
    kind: Kind,
}

#[derive(Clone, PartialEq, Debug)]
enum Kind {
    Disk(Box<Profile>),
    Flash(Box<FlashProfile>),
}

impl AnyProfile {
    /// Parses a profile: of a flash drive if it has a table `flash`, otherwise of a disk.
    ///
    /// # Errors
    /// [`ProfileError`], for the text or for a number out of its range. Whether the numbers fit together is checked
    /// when the drive is built.
    pub fn parse(text: impl Into<Cow<'static, str>>) -> Result<Self, ProfileError> {
        let text = text.into();
        let table: toml::Table = parse(&text)?;
        let kind = if table.contains_key("flash") {
            Kind::Flash(Box::new(FlashProfile::parse(&text)?))
        } else {
            Kind::Disk(Box::new(Profile::parse(&text)?))
        };
        Ok(Self { text, kind })
    }

    /// Parses a built-in profile.
    ///
    /// # Errors
    /// [`ProfileError::Unknown`].
    pub fn named(name: &str) -> Result<Self, ProfileError> {
        let text = flash::text(name).or_else(|_| disk_profile::text(name));
        Self::parse(text.map_err(|_| ProfileError::Unknown {
            name: name.into(),
            known: all_names(),
        })?)
    }

    /// The text, with the comments that give the source of its numbers.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        match &self.kind {
            Kind::Disk(disk) => &disk.name,
            Kind::Flash(flash) => &flash.name,
        }
    }

    /// The description in one line.
    pub fn description(&self) -> &str {
        match &self.kind {
            Kind::Disk(disk) => &disk.description,
            Kind::Flash(flash) => &flash.description,
        }
    }

    /// Class of the drive.
    pub fn class(&self) -> Class {
        match &self.kind {
            Kind::Disk(disk) => match (&disk.zones, &disk.layer) {
                (Some(zones), _) if zones.sequential_kind == ZoneKind::SequentialWriteRequired => {
                    Class::HostManaged
                }
                (Some(_), _) => Class::HostAware,
                (None, LayerShape::Conventional) => Class::Conventional,
                (None, LayerShape::CaveatScriptor(_)) => Class::CaveatScriptor,
                (None, _) => Class::DriveManaged,
            },
            Kind::Flash(flash) => match flash.management {
                ManagementShape::PageMapped { .. } => Class::Flash,
                ManagementShape::Zoned(_) => Class::Zns,
            },
        }
    }

    /// Zones and limits of the drive, if it has zones.
    pub fn geometry(&self) -> Option<Geometry> {
        let model = self.model(0).ok()?;
        model.zones().map(|zones| zones.geometry().clone())
    }

    /// Builds the drive. The seed decides at what angle the platters are at the start.
    ///
    /// # Errors
    /// [`ProfileError`]: a number is out of its range, or does not fit the others.
    pub fn model(&self, seed: u64) -> Result<Box<dyn Model>, ProfileError> {
        Ok(match &self.kind {
            Kind::Disk(disk) if disk.zones.is_some() => Box::new(disk.zoned(seed)?),
            Kind::Disk(disk) => Box::new(disk.drive(seed)?),
            Kind::Flash(flash) => Box::new(flash.drive()?),
        })
    }

    /// Restores the drive from a state that was [saved](Model::saved).
    pub(crate) fn restored(&self, payload: &[u8]) -> Result<Box<dyn Model>, StateError> {
        Ok(match &self.kind {
            Kind::Disk(disk) if disk.zones.is_some() => {
                Box::new(saved::decode::<ZonedDisk>(payload)?)
            }
            Kind::Disk(_) => Box::new(saved::decode::<DiskDrive>(payload)?),
            Kind::Flash(_) => Box::new(saved::decode::<FlashDrive>(payload)?),
        })
    }

    /// A checksum of the text: profiles of the same text have the same.
    pub fn fingerprint(&self) -> u64 {
        crc_fast::checksum(CrcAlgorithm::Crc64Nvme, self.text.as_bytes())
    }
}
