//! A round of the cleaner's work: where it gives way, between any two pieces of its I/O, and what it has done.

use crate::cleaning_job::{CleaningJob, CleaningWork};
use crate::inner::Inner;
use std::time::Duration;

/// Lets the cleaner's commands go one by one.
pub(crate) struct Pieces<'a> {
    store: &'a Inner,
    /// Waits until a moment, or less long; none for somebody who needs a zone.
    waits: Option<&'a mut dyn FnMut(Duration)>,
    /// Whose work this is, if it is not the thread's or a writer's.
    pub job: Option<CleaningJob>,
    /// What was done.
    pub did: CleaningWork,
}

impl<'a> Pieces<'a> {
    /// For somebody who waits for a zone, or for a job.
    pub fn at_full_speed(store: &'a Inner, job: Option<CleaningJob>) -> Self {
        let did = CleaningWork::default();
        Self {
            store,
            waits: None,
            job,
            did,
        }
    }

    /// As the pace says, until a zone is urgently needed.
    pub fn paced(store: &'a Inner, waits: &'a mut dyn FnMut(Duration)) -> Self {
        let waits = Some(waits);
        Self {
            waits,
            ..Self::at_full_speed(store, None)
        }
    }

    /// Comes back when so many bytes may be read or written. No lock is held meanwhile.
    pub fn next(&mut self, bytes: u64) {
        let (store, Some(waits)) = (self.store, &mut self.waits) else {
            return;
        };
        loop {
            let next = match store.is_urgent() {
                true => None,
                false => store.cleaner.next_piece(bytes, &store.requests.seen()),
            };
            waits(next.unwrap_or_default());
            if next.is_none() {
                return;
            }
        }
    }

    /// Whether the zone in hand is left as it is.
    pub fn are_over(&self) -> bool {
        let cleaner = &self.store.cleaner;
        match self.job {
            Some(job) => cleaner.has_stopped(job),
            None if self.waits.is_none() => false,
            None => cleaner.is_over() || cleaner.gives_way() && !self.store.is_urgent(),
        }
    }

    /// Counts bytes that were copied out of the zone in hand.
    pub fn moved(&mut self, bytes: u64) {
        self.store.cleaner.count_moved(bytes);
        self.did.bytes_moved += bytes;
    }

    /// Counts a zone that was reset, and bytes that this freed.
    pub fn cleaned(&mut self, freed: u64) {
        let dead = self.store.freelist.totals().dead();
        self.store.cleaner.count_cleaned(freed, dead);
        self.did.zones_cleaned += 1;
        self.did.bytes_freed += freed;
    }
}
