//! Jobs: reads, writes and moves that a drive is asked to do.

use drive_model::{Span, Time};

/// The request or cleaner that waits for a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// A request, by its number.
    Request(u32),
    /// The drive's cleaner.
    Cleaner,
}

/// A kind of job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// Reads an object or a fragment.
    Read,
    /// Writes one, durably: data, a record of the log, and flushes.
    Write,
    /// Reads a piece that is live and writes it elsewhere.
    Move,
}

/// A job. Places are bytes from the beginning of the drive's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Job {
    /// The request or cleaner that waits for it.
    pub owner: Owner,
    /// The kind of job.
    pub work: Work,
    /// Bytes that are read, written, or moved.
    pub bytes: u64,
    /// The first byte to read.
    pub from: u64,
    /// The first byte to write.
    pub to: u64,
}

/// The end of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// The request or cleaner that waited for it.
    pub owner: Owner,
    /// When it was done.
    pub at: Time,
    /// Time from its arrival to its end.
    pub took: Span,
}
