//! The on-disk format of the metadata. See `docs/format/zeafs.md`.

pub mod frame;
pub mod operation;

/// The format version of new metadata.
pub const FORMAT_VERSION: u32 = 2;
/// The oldest version that is read. Its frames do not record which frames were durable, since they name no
/// extents.
pub const OLDEST_VERSION: u32 = 1;
