//! What a log record says of others: how much of the journal was durable before it was written, of
//! its own run, and of the run that somebody else wrote to last. Logs are synced all the time and
//! the journal seldom; so it is mostly log records that tell damage from a torn tail.

use crate::format::log_record::Mark;
use crate::slot::Slot;
use std::sync::Arc;
use zone::ZoneAddress;

#[derive(Default)]
pub(crate) struct Witness {
    /// Of the journal.
    pub epoch: u64,
    /// Durable for certain.
    pub frames: u64,
    /// The last two runs that were written to, the last one first.
    recent: [Option<Arc<Slot>>; 2],
}

impl Witness {
    /// The mark of a record that is about to be written to `slot`. `window` is that of the flusher.
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
