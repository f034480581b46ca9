//! [`Contents`]: what the zones of a drive show without a mount.

use crate::format::superblock::{Role, Superblock};
use std::fmt;
use zone::{Bytes, ZoneId};

/// The contents of a drive; the default is an empty one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Contents {
    /// The newest superblock.
    pub superblock: Option<Superblock>,
    /// The format version of superblocks that this program cannot read.
    pub other_version: Option<u32>,
    /// Sequential zones that are not empty, and read-only ones, whose content cannot be told from outside.
    pub written_zones: u32,
    /// Bytes below the write pointers of these zones.
    pub written_bytes: u64,
    /// Conventional zones with anything but zeros at their front.
    pub conventional_zones: u32,
    /// Superblock zones that are offline, and conventional zones that cannot be read.
    pub unreadable: Vec<ZoneId>,
}

impl Contents {
    /// Whether the drive has nothing that formatting would destroy.
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
