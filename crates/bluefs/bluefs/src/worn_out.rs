//! Zones that take writes and give nothing back. What the journal and the superblock have in one is made anew elsewhere, and
//! nothing is put into it again.
//!
//! Such a zone is not reset any more: a sequential one is then nobody's at the next mount, and tells by what cannot be read
//! of it that it is one of these.

use device::ZonedDevice;
use runtime::sync::Mutex;
use std::collections::BTreeSet;
use zone::{ZoneAddress, ZoneCondition, ZoneError, ZoneId, ZoneResult};

/// Places of a zone that cannot be read. Fewer may be sectors that the drive puts elsewhere when they are written again.
pub const UNREADABLE_PLACES: usize = 4;

/// The zones of the drive that are known to be so.
#[derive(Default)]
pub(crate) struct WornOut(Mutex<BTreeSet<ZoneId>>);

impl WornOut {
    pub fn add(&self, zone: ZoneId) {
        self.0.lock().insert(zone);
    }

    pub fn contains(&self, zone: ZoneId) -> bool {
        self.0.lock().contains(&zone)
    }

    pub fn all(&self) -> BTreeSet<ZoneId> {
        self.0.lock().clone()
    }

    /// Whether one of these is among zones of the drive.
    pub fn any_of(&self, zones: impl IntoIterator<Item = ZoneId>) -> bool {
        let known = self.0.lock();
        zones.into_iter().any(|zone| known.contains(&zone))
    }
}

/// Whether so many of the first blocks in front of `end` that are written to a zone cannot be read. One that is offline is
/// lost already, and known to be.
pub(crate) fn is_worn_out(device: &dyn ZonedDevice, zone: ZoneId, end: u64) -> ZoneResult<bool> {
    let g = device.geometry();
    let told = device.report_zone(zone)?;
    let written = match told.condition {
        ZoneCondition::Offline => 0,
        _ if told.write_pointer_valid() => told.write_pointer,
        _ => told.capacity,
    };
    let mut block = vec![0; g.block_size as usize];
    let mut unreadable = 0;
    for offset in (0..written.min(end)).step_by(block.len()) {
        match device.read(g.absolute(ZoneAddress::new(zone, offset)), &mut block) {
            Ok(()) => {}
            Err(error @ ZoneError::PowerLost { .. }) => return Err(error),
            Err(_) => unreadable += 1,
        }
        if unreadable == UNREADABLE_PLACES {
            return Ok(true);
        }
    }
    Ok(false)
}
