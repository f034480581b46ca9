//! Bytes of the metadata. `docs/format/zeafs.md` describes them.

pub mod frame;
pub mod operation;

/// The version that is written.
pub const FORMAT_VERSION: u32 = 2;
/// The oldest that is read. Its frames do not say what was durable, since they name nothing else.
pub const OLDEST_VERSION: u32 = 1;
