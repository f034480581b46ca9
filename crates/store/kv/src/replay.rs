//! What is asked about each batch of the write-ahead log when a database is opened.

/// Whether a batch and those behind it count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replay {
    /// It counts.
    Continue,
    /// It and everything behind it never happened; they are dropped for good.
    Stop,
}

/// A batch of the log, or several that were written as one.
#[derive(Clone, Copy, Debug)]
pub struct LoggedBatch<'a> {
    /// The log's path.
    pub log: &'a str,
    /// How many bytes of the log there are up to its end.
    pub end: u64,
    /// The keys that it sets or removes.
    pub keys: &'a [&'a [u8]],
    /// The blobs that [`crate::Batch::log_data`] put into it.
    pub log_data: &'a [&'a [u8]],
}

/// Looks at the batches of the log, in order.
pub trait ReplayFilter: Send {
    /// Whether this one counts.
    fn batch(&mut self, logged: &LoggedBatch<'_>) -> Replay;
}
