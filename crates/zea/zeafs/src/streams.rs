//! Which files are written beside each other.

/// How long a file will live, as far as its writer knows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Lifetime {
    /// Logs and other small files, which go soon.
    Short,
    /// Tables.
    Long,
}

/// Zones that are appended to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Stream {
    /// Of writers.
    Files(Lifetime),
    /// Of the cleaner.
    Moved,
}

/// Active zones beside those of writers: two for metadata while a checkpoint is written, and one for the cleaner.
const OTHERS: u32 = 3;

impl Stream {
    /// The stream that a file of this lifetime is written to, where so many zones may be active.
    pub const fn of(lifetime: Lifetime, max_active_zones: u32) -> Self {
        match max_active_zones {
            0 => Self::Files(lifetime),
            limit if limit >= OTHERS + 2 => Self::Files(lifetime),
            _ => Self::Files(Lifetime::Short),
        }
    }
}
