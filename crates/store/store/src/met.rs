//! Damage to bytes of objects that reads have run into and that waits to be written down: a reader waits for no write.

use runtime::sync::Mutex;
use std::collections::BTreeSet;
use zone::ZoneAddress;

/// Most places that wait; a scrub finds the others.
const MOST: usize = 1000;

/// The places.
#[derive(Default)]
pub(crate) struct Met(Mutex<BTreeSet<ZoneAddress>>);

impl Met {
    /// Whether it is new, and there is room for it.
    pub fn add(&self, at: ZoneAddress) -> bool {
        let mut met = self.0.lock();
        met.len() < MOST && met.insert(at)
    }

    /// All, which wait here no longer.
    pub fn take(&self) -> BTreeSet<ZoneAddress> {
        std::mem::take(&mut self.0.lock())
    }
}
