//! The purposes that a drive can be opened for.

/// The purpose that a drive is opened for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// To read and change it, with an exclusive lock.
    Write,
    /// To read it, with a lock that other readers share.
    Read,
    /// To look at it without a lock, whoever else has it open.
    Observe,
}
