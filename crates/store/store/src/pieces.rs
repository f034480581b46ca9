//! Where the cleaner gives way: between any two pieces of its I/O.

use crate::inner::Inner;
use std::time::Duration;

/// Lets the cleaner's commands go one by one.
pub(crate) struct Pieces<'a> {
    store: &'a Inner,
    /// Waits until a moment, or less long; none for somebody who needs a zone.
    waits: Option<&'a mut dyn FnMut(Duration)>,
}

impl<'a> Pieces<'a> {
    /// For somebody who waits for a zone.
    pub fn at_full_speed(store: &'a Inner) -> Self {
        Self { store, waits: None }
    }

    /// As the pace says, until a zone is urgently needed.
    pub fn paced(store: &'a Inner, waits: &'a mut dyn FnMut(Duration)) -> Self {
        let waits = Some(waits);
        Self { store, waits }
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
        self.waits.is_some() && self.store.cleaner.is_over()
    }
}
