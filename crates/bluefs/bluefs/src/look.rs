//! Inspects a drive without a mount: before it is erased, and if no superblock can be read.

use crate::format::superblock::Superblock;
use crate::ring::{Rings, ring_zones};
use crate::{Contents, Error, Result};
use device::{ZonedDevice, erase};
use zone::{Geometry, ZoneCondition, ZoneError, ZoneId, ZoneKind};

/// The superblock with the highest generation, for a drive of this geometry. Without one, the error tells what is on
/// the drive.
pub(crate) fn find(device: &dyn ZonedDevice) -> Result<(Rings, Superblock)> {
    match Rings::search(device)? {
        (rings, Some(superblock)) => {
            check_geometry(device.geometry(), &superblock)?;
            Ok((rings, superblock))
        }
        (_, None) => {
            let contents = look(device)?;
            Err(if contents.is_empty() {
                Error::NotFormatted
            } else {
                Error::SuperblockLost {
                    contents: Box::new(contents),
                }
            })
        }
    }
}

fn check_geometry(g: &Geometry, s: &Superblock) -> Result<()> {
    let zones = (s.zone_count.into(), g.drive_zones().into());
    let blocks = (s.block_size.into(), g.block_size.into());
    let pairs = [
        ("block size", blocks),
        ("zone size", (s.zone_size, g.zone_size)),
        ("zone capacity", (s.zone_capacity, g.zone_capacity)),
        ("number of zones", zones),
    ];
    for (what, (expected, found)) in pairs {
        if expected != found {
            return Err(Error::GeometryChanged {
                what,
                expected,
                found,
            });
        }
    }
    Ok(())
}

/// Inspects superblocks, the condition of every zone, and the front of conventional ones.
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
            // An offline zone other than those has nothing that could be lost.
            ZoneCondition::Offline => {
                contents.unreadable.extend(is_ring.then_some(zone.id));
            }
            _ if zone.kind == ZoneKind::Conventional => {
                match erase::has_data_in_front(device, zone.id) {
                    Ok(has_data) => contents.conventional_zones += u32::from(has_data),
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
