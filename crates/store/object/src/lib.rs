//! The object algebra: how extents, blobs and segments change when an object is written, truncated,
//! punched, cloned or moved. Pure: no I/O, no clock, no randomness.
//!
//! An object is a run of [`Segment`]s of maps; a map is a run of [`Extent`]s without gaps; an extent
//! shows a part of a [`Blob`], a hole, or bytes of its own. A blob that only one extent shows lies in that
//! extent's row; one that several show has a row of its own with a count of references. [`Staged`]
//! turns operations into rows to write and counters to move.

mod accounts;
mod blob;
mod divide;
mod extent;
mod fragment;
mod references;
mod segment;
mod staged;

pub use accounts::{Accounts, Delta, Inline};
pub use blob::{Blob, ChecksumBlock, ChecksumKind, Codec, MAX_STORED};
pub use divide::part;
pub use extent::{BlobId, BlobName, Content, Extent, MAX_INLINE, SharedBlob};
pub use fragment::Fragment;
pub use references::References;
pub use segment::{Segment, Span, overwrite, shorten, size, spans};
pub use staged::{Copy, Rows, Staged};
