//! Shows the batches of RocksDB's log to a filter.

use kv::{Replay, ReplayFilter};

/// Collects a batch's keys and blobs from the C++ side.
pub(crate) struct Filter {
    filter: Option<Box<dyn ReplayFilter>>,
    keys: Vec<Vec<u8>>,
    blobs: Vec<Vec<u8>>,
}

impl Filter {
    pub fn new(filter: Option<Box<dyn ReplayFilter>>) -> Self {
        Self {
            filter,
            keys: Vec::new(),
            blobs: Vec::new(),
        }
    }

    pub fn begin(&mut self) {
        self.keys.clear();
        self.blobs.clear();
    }

    pub fn key(&mut self, key: &[u8]) {
        self.keys.push(key.to_vec());
    }

    pub fn blob(&mut self, blob: &[u8]) {
        self.blobs.push(blob.to_vec());
    }

    /// False to stop.
    pub fn end(&mut self) -> bool {
        let Some(filter) = &mut self.filter else {
            return true;
        };
        let keys: Vec<&[u8]> = self.keys.iter().map(Vec::as_slice).collect();
        let blobs: Vec<&[u8]> = self.blobs.iter().map(Vec::as_slice).collect();
        filter.batch(&keys, &blobs) == Replay::Continue
    }
}
