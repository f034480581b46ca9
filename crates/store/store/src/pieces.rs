//! One round of cleaning: where it waits between two pieces of I/O, when it ends early, and what it has done.

use crate::cleaning_job::{CleaningJob, CleaningWork};
use crate::inner::Inner;
use std::time::Duration;

/// Admits the I/O of one round of cleaning piece by piece, and counts its work.
pub(crate) struct Pieces<'a> {
    store: &'a Inner,
    /// Waits until a moment, or shorter; `None` at full speed.
    waits: Option<&'a mut dyn FnMut(Duration)>,
    /// The user's request that this round serves; `None` for the background thread and for writers.
    pub job: Option<CleaningJob>,
    /// Work of this round.
    pub did: CleaningWork,
}

impl<'a> Pieces<'a> {
    /// For a writer that waits for a zone, or for a job.
    pub fn at_full_speed(store: &'a Inner, job: Option<CleaningJob>) -> Self {
        let did = CleaningWork::default();
        Self {
            store,
            waits: None,
            job,
            did,
        }
    }

    /// At the cleaner's pace, until a zone is urgently needed.
    pub fn paced(store: &'a Inner, waits: &'a mut dyn FnMut(Duration)) -> Self {
        let waits = Some(waits);
        Self {
            waits,
            ..Self::at_full_speed(store, None)
        }
    }

    /// Waits until the next `bytes` may be read or written. The caller must hold no lock.
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

    /// Whether cleaning has to stop, the zone in hand being left as it is.
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
