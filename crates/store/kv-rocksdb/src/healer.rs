//! Has damage healed that RocksDB's compactions meet.

use kv::{Error, Heal};

/// Asked from the C++ side, on a thread of RocksDB's.
pub(crate) struct Healer(pub Heal);

impl Healer {
    /// True if a compaction is worth trying again.
    pub fn heal(&self, message: &str) -> bool {
        let message = message.to_owned();
        (self.0)(&Error::Corruption { message })
    }
}
