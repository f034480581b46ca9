//! Worn-out zones: they accept writes, but reads of them fail. The journal and superblocks in such a zone are written
//! again elsewhere, and nothing is written to it again.
//!
//! Such a zone is not reset any more. A sequential one has no owner at the next mount, which recognizes it by its
//! unreadable blocks.

use device::ZonedDevice;
use runtime::sync::Mutex;
use std::collections::BTreeSet;
use zone::{ZoneAddress, ZoneCondition, ZoneError, ZoneId, ZoneResult};

/// Unreadable blocks of a worn-out zone. Fewer may be sectors that the drive remaps when they are written again.
pub const UNREADABLE_PLACES: usize = 4;

/// The zones of the drive that are known to be worn out.
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

    /// Whether one of `zones` is worn out.
    pub fn any_of(&self, zones: impl IntoIterator<Item = ZoneId>) -> bool {
        let known = self.0.lock();
        zones.into_iter().any(|zone| known.contains(&zone))
    }
}

/// Whether at least [`UNREADABLE_PLACES`] of the written blocks before zone offset `end` cannot be read. False for an
/// offline zone, which is known to be lost.
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
