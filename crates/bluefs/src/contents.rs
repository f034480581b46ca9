//! What is on a drive, as far as its zones tell without being mounted: before anything is erased, and
//! where no superblock can be read.

use crate::format::superblock::{Role, Superblock};
use crate::ring::{Rings, ring_zones};
use crate::{Error, Result};
use device::ZonedDevice;
use std::fmt;
use zone::{Bytes, ZoneCondition, ZoneError, ZoneId, ZoneKind};

/// So much of each conventional zone is looked at, from its start: superblocks, journals and runs of
/// records begin there, and other file systems keep there what they are known by.
const FRONT_BYTES: u64 = 1 << 20;

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

/// Looks at everything: superblocks, the condition of every zone, the front of conventional ones.
pub(crate) fn look(device: &dyn ZonedDevice) -> Result<Contents> {
    let g = device.geometry();
    let mut contents = Contents::default();
    match Rings::search(device) {
        Ok((_, newest)) => contents.superblock = newest,
        Err(Error::UnsupportedVersion { found, .. }) => contents.other_version = Some(found),
        Err(error) => return Err(error),
    }
    let rings = ring_zones(g).concat();
    for zone in device.report(ZoneId(0), g.zone_count)? {
        let is_ring = rings.contains(&zone.id);
        match zone.condition {
            // Of any other zone nothing is left that could be lost.
            ZoneCondition::Offline => {
                contents.unreadable.extend(is_ring.then_some(zone.id));
            }
            _ if zone.kind == ZoneKind::Conventional => {
                let mut front = vec![0; FRONT_BYTES.min(zone.capacity) as usize];
                match device.read(g.start(zone.id), &mut front) {
                    Ok(()) if front.iter().all(|byte| *byte == 0) => {}
                    Ok(()) => contents.conventional_zones += 1,
                    Err(error @ ZoneError::PowerLost { .. }) => return Err(error.into()),
                    Err(error) => {
                        tracing::warn!(%error, zone = %zone.id, "a zone cannot be read");
                        contents.unreadable.push(zone.id);
                    }
                }
            }
            ZoneCondition::ReadOnly => contents.written_zones += 1,
            _ => {
                contents.written_zones += u32::from(zone.write_pointer > 0);
                contents.written_bytes += zone.write_pointer;
            }
        }
    }
    Ok(contents)
}
