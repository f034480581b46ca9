//! What is on a drive, as far as its zones tell without being mounted.

use crate::format::superblock::{Role, Superblock};
use std::fmt;
use zone::{Bytes, ZoneId};

/// What is on a drive.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Contents {
    /// The newest superblock.
    pub superblock: Option<Superblock>,
    /// There are superblocks, of this format version.
    pub other_version: Option<u32>,
    /// Sequential zones that are not empty, and those that are read-only, for what is in them nobody
    /// can tell from outside.
    pub written_zones: u32,
    /// Bytes below their write pointers.
    pub written_bytes: u64,
    /// Conventional zones with anything but zeros at their front.
    pub conventional_zones: u32,
    /// Superblock zones that are offline, and conventional zones that cannot be read.
    pub unreadable: Vec<ZoneId>,
}

impl Contents {
    /// Nothing is on the drive that could be lost.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.superblock, self.other_version) {
            (Some(superblock), _) => f.write_str(match superblock.role {
                Role::Shared => "an object store",
                Role::Alone => "a BlueFS file system",
            })?,
            (None, Some(version)) => write!(f, "a file system of BlueFS format version {version}")?,
            (None, None) => f.write_str("data")?,
        }
        let mut parts = Vec::new();
        let zones = |count: u32| if count == 1 { "zone" } else { "zones" };
        if self.written_zones > 0 {
            let (count, bytes) = (self.written_zones, Bytes(self.written_bytes));
            let named = zones(count);
            parts.push(format!("{bytes} in {count} sequential {named}"));
        }
        if self.conventional_zones > 0 {
            let count = self.conventional_zones;
            parts.push(format!(
                "something in {count} conventional {}",
                zones(count)
            ));
        }
        if let Some(first) = self.unreadable.first() {
            let count = self.unreadable.len() as u32;
            parts.push(format!(
                "{count} {} that cannot be read, the first is zone {first}",
                zones(count)
            ));
        }
        if parts.is_empty() {
            Ok(())
        } else {
            write!(f, " ({})", parts.join(", "))
        }
    }
}
