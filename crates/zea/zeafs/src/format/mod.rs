//! Bytes of the metadata. `docs/format/zeafs.md` describes them.

pub mod frame;
pub mod operation;

/// The version that is written, and the only one that is read.
pub const FORMAT_VERSION: u32 = 1;
