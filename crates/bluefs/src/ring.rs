//! The superblock ring: zones 0 and 1, one block a superblock.
//!
//! Sequential zones are appended to; conventional ones are filled slot by slot. When a zone is
//! used up, the other one is reset and takes over; until the first block is in it, the last one
//! in the full zone counts.

use crate::format::superblock::{Decoded, ENCODED, Superblock};
use crate::{Error, Result};
use device::ZonedDevice;
use zone::{ZoneAddress, ZoneCondition, ZoneError, ZoneId, ZoneKind};

/// The zones of the ring.
pub(crate) const RING: [ZoneId; 2] = [ZoneId(0), ZoneId(1)];
/// Superblocks in one zone at most; it bounds what a mount reads.
const MAX_SLOTS: u64 = 1024;

/// Where the ring stands.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    zone: ZoneId,
    /// Blocks used in `zone`.
    used: u64,
}

fn slots(device: &dyn ZonedDevice, zone: ZoneId) -> u64 {
    let g = device.geometry();
    (g.capacity(zone) / u64::from(g.block_size)).min(MAX_SLOTS)
}

impl Ring {
    /// A ring with nothing in it.
    pub fn empty() -> Self {
        Self {
            zone: RING[0],
            used: 0,
        }
    }

    /// The zone that takes the next superblock.
    pub fn zone(&self) -> ZoneId {
        self.zone
    }

    /// Finds the superblock with the highest generation.
    pub fn find(device: &dyn ZonedDevice) -> Result<(Self, Superblock)> {
        let g = device.geometry();
        let block = u64::from(g.block_size);
        let mut found: Option<(Self, Superblock)> = None;
        let mut other_version = None;
        for zone in RING {
            if zone.0 >= g.zone_count {
                break;
            }
            let report = device.report_zone(zone)?;
            let used = match g.kind(zone) {
                _ if report.condition == ZoneCondition::Offline => 0,
                ZoneKind::Conventional => slots(device, zone),
                _ if report.write_pointer_valid() => {
                    (report.write_pointer / block).min(slots(device, zone))
                }
                // It cannot be written any more, but what is in it counts.
                _ if report.condition == ZoneCondition::ReadOnly => slots(device, zone),
                _ => 0,
            };
            let mut blocks = vec![0; (used * block) as usize];
            if used > 0 {
                device.read(g.start(zone), &mut blocks)?;
            }
            for (slot, bytes) in blocks.chunks(block as usize).enumerate() {
                match Superblock::decode(&bytes[..ENCODED.min(bytes.len())]) {
                    Decoded::Valid(s)
                        if found
                            .as_ref()
                            .is_none_or(|(_, f)| s.generation > f.generation) =>
                    {
                        // In a sequential zone a torn block may lie behind the last good one.
                        let next = match g.kind(zone) {
                            ZoneKind::Conventional => slot as u64 + 1,
                            _ if report.condition == ZoneCondition::ReadOnly => used,
                            _ => report.write_pointer / block,
                        };
                        found = Some((Self { zone, used: next }, s));
                    }
                    Decoded::OtherVersion(version) => other_version = Some(version),
                    _ => {}
                }
            }
        }
        match (found, other_version) {
            (Some(found), _) => Ok(found),
            (None, Some(found)) => {
                let supported = crate::FORMAT_VERSION;
                Err(Error::UnsupportedVersion { found, supported })
            }
            (None, None) => Err(Error::NotFormatted),
        }
    }

    /// Appends a superblock; the caller flushes.
    pub fn append(&mut self, device: &dyn ZonedDevice, superblock: &Superblock) -> Result<()> {
        let g = device.geometry();
        let block = u64::from(g.block_size);
        if self.used >= slots(device, self.zone) {
            self.turn(device)?;
        }
        let at = |ring: &Self| g.absolute(ZoneAddress::new(ring.zone, ring.used * block));
        match device.write(at(self), &superblock.encode()) {
            Err(error) if !matches!(error, ZoneError::PowerLost { .. }) => {
                tracing::warn!(%error, zone = %self.zone, "no superblock can be written here");
                self.turn(device)?;
                device.write(at(self), &superblock.encode())?;
            }
            result => result?,
        }
        self.used += 1;
        Ok(())
    }

    /// Goes on at the start of the other zone.
    fn turn(&mut self, device: &dyn ZonedDevice) -> Result<()> {
        let zone = self.other();
        let g = device.geometry();
        if g.kind(zone) != ZoneKind::Conventional {
            device.reset(zone)?;
        }
        if g.kind(self.zone) != ZoneKind::Conventional
            && let Err(error) = device.finish(self.zone)
        {
            // Only its active resource is lost, should it be broken.
            tracing::warn!(%error, zone = %self.zone, "a superblock zone cannot be finished");
        }
        *self = Self { zone, used: 0 };
        Ok(())
    }

    /// A power cut may have kept a superblock and lost that the other zone was finished before:
    /// it would hold an active resource.
    pub fn finish_other(&self, device: &dyn ZonedDevice) -> Result<()> {
        let other = self.other();
        let g = device.geometry();
        if g.max_active_zones > 0
            && g.kind(other) != ZoneKind::Conventional
            && device.report_zone(other)?.condition.is_active()
        {
            device.finish(other)?;
        }
        Ok(())
    }

    fn other(&self) -> ZoneId {
        if self.zone == RING[0] {
            RING[1]
        } else {
            RING[0]
        }
    }
}
