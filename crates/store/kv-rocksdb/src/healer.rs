//! Passes damage that RocksDB's compactions meet to the [`Heal`] callback.

use kv::{Error, Heal};

/// Called from C++, on a thread of RocksDB's.
pub(crate) struct Healer(pub Heal);

impl Healer {
    /// Whether the compaction should be retried.
    pub fn heal(&self, message: &str) -> bool {
        let message = message.to_owned();
        (self.0)(&Error::Corruption { message })
    }
}
