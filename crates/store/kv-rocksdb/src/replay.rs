//! Passes the batches of RocksDB's log to a filter.

use kv::{LoggedBatch, Replay, ReplayFilter};

/// Bytes of the blocks in which a log is written.
const BLOCK: u64 = 32 << 10;
/// Bytes of the header before each part of a record; each part lies in one block.
const HEADER: u64 = 7;

/// Collects a batch's keys and blobs from the C++ side.
pub(crate) struct Filter {
    filter: Option<Box<dyn ReplayFilter>>,
    /// Path of the log.
    log: String,
    /// Offset in the log of the batch's end.
    end: u64,
    keys: Vec<Vec<u8>>,
    blobs: Vec<Vec<u8>>,
}

impl Filter {
    pub fn new(filter: Option<Box<dyn ReplayFilter>>) -> Self {
        Self {
            filter,
            log: String::new(),
            end: 0,
            keys: Vec::new(),
            blobs: Vec::new(),
        }
    }

    /// Begins the next batch of a log, of `length` bytes.
    pub fn begin(&mut self, log: &[u8], length: usize) {
        if self.log.as_bytes() != log {
            self.log = String::from_utf8_lossy(log).into_owned();
            self.end = 0;
        }
        self.end = end_of_record(self.end, length as u64);
        self.keys.clear();
        self.blobs.clear();
    }

    pub fn key(&mut self, key: &[u8]) {
        self.keys.push(key.to_vec());
    }

    pub fn blob(&mut self, blob: &[u8]) {
        self.blobs.push(blob.to_vec());
    }

    /// Ends the batch and asks the filter; false to stop the replay.
    pub fn end(&mut self) -> bool {
        let Some(filter) = &mut self.filter else {
            return true;
        };
        let keys: Vec<&[u8]> = self.keys.iter().map(Vec::as_slice).collect();
        let blobs: Vec<&[u8]> = self.blobs.iter().map(Vec::as_slice).collect();
        let logged = LoggedBatch {
            log: &self.log,
            end: self.end,
            keys: &keys,
            log_data: &blobs,
        };
        filter.batch(&logged) == Replay::Continue
    }
}

/// End of a record of `length` bytes that follows one that ends at `end` (RocksDB's wiki, "Write Ahead Log File
/// Format").
fn end_of_record(mut end: u64, mut length: u64) -> u64 {
    loop {
        let room = BLOCK - end % BLOCK;
        if room < HEADER {
            end += room;
            continue;
        }
        let part = length.min(room - HEADER);
        end += HEADER + part;
        length -= part;
        if length == 0 {
            return end;
        }
    }
}
