//! Data that is on the drive and has no name yet.

use crate::format::extent::Extent;
use crate::freelist::Freelist;
use std::fmt;
use std::sync::Arc;
use zone::ZoneId;

/// Data on the drive that no object names yet; hand it to a [`crate::Transaction`]. Dropped
/// without a commit, its bytes are dead.
pub struct Written {
    pub(crate) length: u64,
    pub(crate) extents: Vec<Extent>,
    /// What keeps the zones from being reset until the commit is through.
    pub(crate) hold: Hold,
}

impl Written {
    /// Bytes of data.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Written")
            .field("length", &self.length)
            .field("extents", &self.extents.len())
            .finish()
    }
}

/// Pins and promised space, given back on drop.
pub(crate) struct Hold {
    pub freelist: Arc<Freelist>,
    pub pins: Vec<ZoneId>,
    pub reserved: u64,
}

impl Hold {
    pub fn new(freelist: Arc<Freelist>) -> Self {
        Self {
            freelist,
            pins: Vec::new(),
            reserved: 0,
        }
    }

    /// Keeps the zones for good: nobody knows whether a failed commit points to them.
    pub fn leak(mut self) {
        self.pins.clear();
        self.reserved = 0;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        for zone in self.pins.drain(..) {
            self.freelist.unpin(zone);
        }
        self.freelist.unreserve(self.reserved);
    }
}
