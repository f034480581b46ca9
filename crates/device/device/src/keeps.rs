//! What outlives an unclean stop.

/// What is there of writes that were answered, and that no flush has covered, after an unclean stop: each includes the one
/// in front of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Keeps {
    /// Any of their blocks: they reach the medium in any order, and a write pointer may be above zeros. A drive in a file whose
    /// host lost power (`docs/format/file-drive.md`).
    Blocks,
    /// In each zone the first of them, and the write pointer behind these. A drive.
    Prefixes,
    /// All of them. A drive in a file whose host has run since.
    Writes,
}
