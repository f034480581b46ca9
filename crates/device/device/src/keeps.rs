//! Which unflushed writes survive an unclean stop.

/// Which of the writes that were answered and not flushed survive an unclean stop. Each variant includes the
/// guarantee of the one before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Keeps {
    /// Any of their blocks: they reach the medium in any order, and a write pointer may be above zeros. A drive
    /// in a file whose host lost power (`docs/format/file-drive.md`).
    Blocks,
    /// In each zone a prefix of the writes, with the write pointer at its end. A real drive.
    Prefixes,
    /// All of them. A drive in a file whose host has run since, and whose file system has stayed mounted.
    Writes,
}
