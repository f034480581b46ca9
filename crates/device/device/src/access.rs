//! What an opener of a drive is there for.

/// What an opener of a drive is there for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// To change it, alone.
    Write,
    /// To read it, with other readers.
    Read,
    /// To look at it, whoever else has it.
    Observe,
}
