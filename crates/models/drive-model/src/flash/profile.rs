//! Profiles of flash drives: TOML texts that give every number with its unit and its source.

use super::array::{Array, FlashShape};
use super::controller::{Controller, ControllerShape};
use super::drive::{FlashDrive, Management};
use super::page_mapped::{LEAST_SPARE, PageMapped};
use super::zoned::{Zoned, ZonesShape};
use crate::numbers;
use crate::profile_error::{ProfileError, must};
use crate::profile_text::{self, parse};
use crate::request::BLOCK_BYTES;
use crate::zones::MOST_ZONES;
use serde::{Deserialize, Serialize};

/// A profile of a flash drive.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashProfile {
    /// What it is called.
    pub name: String,
    /// A description in one line.
    pub description: String,
    /// The source of the numbers.
    pub source: String,
    /// Commands and the write buffer.
    pub controller: ControllerShape,
    /// Dies and channels.
    pub flash: FlashShape,
    /// The side that decides where data goes.
    pub management: ManagementShape,
}

/// The side that decides where data goes, as in a profile.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ManagementShape {
    /// The drive: see [`PageMapped`].
    PageMapped {
        /// Capacity for the host, in bytes.
        capacity_bytes: u64,
        /// Number of superblocks; those beyond the capacity are spare.
        superblocks: u32,
    },
    /// The host: see [`Zoned`].
    Zoned(ZonesShape),
}

/// Limit on blocks of flash with maps, 256 GiB: a model keeps eight bytes for each.
const MOST_SLOTS: u64 = 1 << 26;

static PROFILES: [(&str, &str); 2] = [
    ("zns-zn540", include_str!("../../profiles/zns-zn540.toml")),
    ("ssd-15gb", include_str!("../../profiles/ssd-15gb.toml")),
];

/// Names of the built-in flash drives.
pub fn names() -> Vec<&'static str> {
    PROFILES.iter().map(|(name, _)| *name).collect()
}

/// Text of a built-in profile.
pub(crate) fn text(name: &str) -> Result<&'static str, ProfileError> {
    profile_text::text(&PROFILES, name)
}

impl FlashProfile {
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

    /// Builds the drive. No part of it is random.
    ///
    /// # Errors
    /// A number is out of its range, or the capacity leaves too little spare room.
    pub fn drive(&self) -> Result<FlashDrive, ProfileError> {
        numbers::check_of(self)?;
        self.flash.check()?;
        let controller = Controller::new(self.controller.clone());
        let unit = u64::from(self.flash.unit_blocks().unwrap_or(0));
        let buffered = match &self.management {
            ManagementShape::PageMapped { .. } => 1,
            ManagementShape::Zoned(zones) => u64::from(match zones.max_active_zones {
                0 => zones.zones,
                limit => limit,
            }),
        };
        // Each closed zone keeps a part of a program unit in the buffer.
        let least = (buffered + 1).saturating_mul(unit * BLOCK_BYTES);
        must(
            self.controller.buffer_bytes >= least,
            "controller.buffer_bytes",
            self.controller.buffer_bytes,
            format_args!("at least {least}, a program unit of each active zone and one more"),
        )?;
        Ok(match &self.management {
            ManagementShape::PageMapped {
                capacity_bytes,
                superblocks,
            } => {
                let superblock = u64::from(self.flash.superblock_blocks().unwrap_or(0));
                let room = superblock * u64::from(*superblocks);
                let blocks = capacity_bytes / BLOCK_BYTES;
                let most = MOST_SLOTS / superblock;
                must(
                    u64::from(*superblocks) <= most,
                    "management.superblocks",
                    superblocks,
                    format_args!("at most {most}, for {MOST_SLOTS} blocks of flash"),
                )?;
                let spare = u64::from(LEAST_SPARE) * superblock;
                if blocks + spare > room {
                    return Err(ProfileError::TooSmall {
                        capacity_bytes: *capacity_bytes,
                        beside_bytes: spare * BLOCK_BYTES,
                        room_bytes: room * BLOCK_BYTES,
                    });
                }
                let array = Array::new(&self.flash, *superblocks);
                let pages = PageMapped::new(blocks as u32, &array);
                FlashDrive::new(array, controller, Management::Pages(pages))
            }
            ManagementShape::Zoned(zones) => {
                let superblock = u64::from(self.flash.superblock_blocks().unwrap_or(0));
                let (size, least) = (zones.zone_size_bytes, superblock * BLOCK_BYTES);
                must(
                    size >= least && size.is_multiple_of(BLOCK_BYTES),
                    "management.zone_size_bytes",
                    size,
                    format_args!(
                        "a multiple of 4,096, and at least the {least} bytes of a superblock"
                    ),
                )?;
                must(
                    (1..=MOST_ZONES).contains(&u64::from(zones.zones)),
                    "management.zones",
                    zones.zones,
                    format_args!("1 to {MOST_ZONES}"),
                )?;
                let array = Array::new(&self.flash, zones.zones);
                let zoned = Zoned::new(zones, &array)?;
                FlashDrive::new(array, controller, Management::Zones(zoned))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Model;

    #[test]
    fn every_built_in_profile_builds_a_drive() {
        for name in names() {
            let profile = FlashProfile::named(name).unwrap();
            assert_eq!(profile.name, name);
            assert!(profile.drive().unwrap().blocks() > 0);
        }
    }

    #[test]
    fn a_profile_that_cannot_be_says_why() {
        let mut profile = FlashProfile::named("ssd-15gb").unwrap();
        if let ManagementShape::PageMapped { capacity_bytes, .. } = &mut profile.management {
            *capacity_bytes *= 2;
        }
        assert!(matches!(
            profile.drive().unwrap_err(),
            ProfileError::TooSmall { .. }
        ));
        profile.controller.buffer_bytes = 4096;
        let error = profile.drive().unwrap_err().to_string();
        assert!(error.contains("buffer_bytes"), "{error}");
        profile.flash.planes = 0;
        assert!(profile.drive().is_err());
        profile.controller.read_bytes_per_second = 0;
        let error = profile.drive().unwrap_err().to_string();
        assert!(error.contains("read_bytes_per_second is 0: "), "{error}");
        let mut zoned = FlashProfile::named("zns-zn540").unwrap();
        if let ManagementShape::Zoned(zones) = &mut zoned.management {
            zones.max_open_zones = 15;
        }
        assert!(matches!(zoned.drive().unwrap_err(), ProfileError::Zones(_)));
    }
}
