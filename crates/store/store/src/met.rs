//! Places of damaged object data that reads have found and that wait to be recorded in the database: readers do not
//! write.

use runtime::sync::Mutex;
use std::collections::BTreeSet;
use zone::ZoneAddress;

/// Most places that wait to be recorded; a scrub finds the others.
const MOST: usize = 1000;

/// The places, each once.
#[derive(Default)]
pub(crate) struct Met(Mutex<BTreeSet<ZoneAddress>>);

impl Met {
    /// Adds a place; true if it is new and there was room for it.
    pub fn add(&self, at: ZoneAddress) -> bool {
        let mut met = self.0.lock();
        met.len() < MOST && met.insert(at)
    }

    /// Takes all places out.
    pub fn take(&self) -> BTreeSet<ZoneAddress> {
        std::mem::take(&mut self.0.lock())
    }
}
