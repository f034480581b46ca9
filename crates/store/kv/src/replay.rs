//! What is asked about each batch of the write-ahead log when a database is opened.

/// Whether a batch and those behind it count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replay {
    /// It counts.
    Continue,
    /// It and everything behind it never happened; they are dropped for good.
    Stop,
}

/// Looks at the batches of the log, in order.
pub trait ReplayFilter: Send {
    /// A batch: the keys that it sets or removes, and the blobs that [`crate::Batch::log_data`] put into it.
    fn batch(&mut self, keys: &[&[u8]], log_data: &[&[u8]]) -> Replay;
}
