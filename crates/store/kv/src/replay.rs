//! The filter that decides, when a database is opened, which batches of the write-ahead log count.

/// Judgement of a [`ReplayFilter`]: whether a batch of the log, and those after it, count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replay {
    /// This batch counts.
    Continue,
    /// This batch and all later ones are dropped for good.
    Stop,
}

/// A batch in the log, or several that were written as one.
#[derive(Clone, Copy, Debug)]
pub struct LoggedBatch<'a> {
    /// The log's path.
    pub log: &'a str,
    /// Offset in the log of the batch's end.
    pub end: u64,
    /// The keys that it sets or removes.
    pub keys: &'a [&'a [u8]],
    /// The blobs that [`crate::Batch::log_data`] put into it.
    pub log_data: &'a [&'a [u8]],
}

/// Receives the batches of the log, in order.
pub trait ReplayFilter: Send {
    /// Whether this batch counts.
    fn batch(&mut self, logged: &LoggedBatch<'_>) -> Replay;
}
