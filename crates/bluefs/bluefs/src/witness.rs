//! Makes the durability marks of log records: how much was durable of the journal, of the record's own run, and of the
//! other run that was written to last. Logs are synced all the time and the journal seldom, so it is mostly the marks
//! of log records that tell damage from a torn tail.

use crate::format::log_record::Mark;
use crate::slot::Slot;
use std::sync::Arc;
use zone::ZoneAddress;

#[derive(Default)]
pub(crate) struct Witness {
    /// Epoch of the journal.
    pub epoch: u64,
    /// Frames of the epoch that are durable.
    pub frames: u64,
    /// The last two runs that were written to, the latest first.
    recent: [Option<Arc<Slot>>; 2],
}

impl Witness {
    /// The mark of a record that is about to be written to `slot`. `window` is the flusher's: the number of the next
    /// flush, and of the last that has finished.
    pub fn mark(&mut self, slot: &Arc<Slot>, window: (u64, u64)) -> Mark {
        let is_own = |s: &Arc<Slot>| Arc::ptr_eq(s, slot);
        if !self.recent[0].as_ref().is_some_and(is_own) {
            self.recent = [Some(slot.clone()), self.recent[0].take()];
        }
        let other = self.recent[1].as_ref();
        let none = || (slot.zone, 0, slot.run_id);
        let (zone, offset, other_run_id) =
            other.map_or_else(none, |o| (o.zone, o.durable(window), o.run_id));
        Mark {
            epoch: self.epoch,
            frames: self.frames,
            run: slot.durable(window),
            other: ZoneAddress::new(zone, offset),
            other_run_id,
        }
    }
}
