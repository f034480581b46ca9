//! Streams: which files share a zone.

/// Expected lifetime of a file, as its writer declares it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Lifetime {
    /// Logs and other small files, which are deleted soon.
    Short,
    /// SSTs.
    Long,
}

/// A sequence of zones that is appended to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Stream {
    /// Data of writers.
    Files(Lifetime),
    /// Data that the cleaner moves.
    Moved,
}

/// Active zones besides those of writers: two for metadata while a checkpoint is written, and one for the
/// cleaner.
const OTHERS: u32 = 3;

impl Stream {
    /// The stream for a file of this lifetime on a drive that allows `max_active_zones` active zones (0: no limit).
    pub const fn of(lifetime: Lifetime, max_active_zones: u32) -> Self {
        match max_active_zones {
            0 => Self::Files(lifetime),
            limit if limit >= OTHERS + 2 => Self::Files(lifetime),
            _ => Self::Files(Lifetime::Short),
        }
    }
}
