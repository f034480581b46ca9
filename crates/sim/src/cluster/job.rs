//! What a drive is asked to do.

use drive_model::{Span, Time};

/// Who waits for a job.
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
    /// Who waits for it.
    pub owner: Owner,
    /// What it is.
    pub work: Work,
    /// How much is read, or written, or both.
    pub bytes: u64,
    /// What is read.
    pub from: u64,
    /// What is written.
    pub to: u64,
}

/// The end of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// Who waited.
    pub owner: Owner,
    /// When it was done.
    pub at: Time,
    /// How long that was after it came.
    pub took: Span,
}
