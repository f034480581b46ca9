//! What is asked about each batch of the write-ahead log when a database is opened.

/// Whether a batch and those behind it count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replay {
    /// It counts.
    Continue,
    /// It and everything behind it never happened; RocksDB drops them for good.
    Stop,
}

/// Looks at the batches of the log, in order.
pub trait ReplayFilter: Send {
    /// A batch with the blobs that [`crate::Batch::log_data`] put into it.
    fn batch(&mut self, log_data: &[&[u8]]) -> Replay;
}

/// Collects a batch's blobs from the C++ side.
pub(crate) struct Filter {
    filter: Option<Box<dyn ReplayFilter>>,
    blobs: Vec<Vec<u8>>,
}

impl Filter {
    pub fn new(filter: Option<Box<dyn ReplayFilter>>) -> Self {
        Self {
            filter,
            blobs: Vec::new(),
        }
    }

    pub fn begin(&mut self) {
        self.blobs.clear();
    }

    pub fn blob(&mut self, blob: &[u8]) {
        self.blobs.push(blob.to_vec());
    }

    /// False to stop.
    pub fn end(&mut self) -> bool {
        let Some(filter) = &mut self.filter else {
            return true;
        };
        let blobs: Vec<&[u8]> = self.blobs.iter().map(Vec::as_slice).collect();
        filter.batch(&blobs) == Replay::Continue
    }
}
