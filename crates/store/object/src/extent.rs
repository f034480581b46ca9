//! An extent: the source of a run of a map's bytes.

use crate::{Blob, References};
use std::fmt;

/// Most bytes that an extent holds inline, in the metadata.
pub const MAX_INLINE: u64 = 4 << 10;

/// The number of a shared blob; never used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BlobId(pub u64);

/// A run of a map's bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Number of bytes; at least one.
    pub length: u64,
    /// Source of the bytes.
    pub content: Content,
}

/// Source of an extent's bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// Zeros that take no space.
    Hole,
    /// The bytes themselves; at most [`MAX_INLINE`].
    Inline(Vec<u8>),
    /// The raw bytes from `skip` on of a blob that no other extent shows.
    Own {
        /// The blob, which lies in the extent's row.
        blob: Blob,
        /// Raw bytes before those shown.
        skip: u32,
    },
    /// The raw bytes from `skip` on of a blob that other extents may show too.
    Shared {
        /// Number of the blob, which has a row of its own.
        blob: BlobId,
        /// Raw bytes before those shown.
        skip: u32,
    },
}

/// A blob with a row of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedBlob {
    /// Its codec, places and checksums.
    pub blob: Blob,
    /// The only map with extents that show it; `None` if there may be several.
    pub map: Option<u64>,
    /// Number of extents that show each of its raw bytes; never empty.
    pub references: References,
}

/// How the cleaning index names a blob.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BlobName {
    /// In the row of an extent.
    Own {
        /// Map of the extent.
        map: u64,
        /// End of the extent: the offset after its last byte.
        end: u64,
    },
    /// In a row of its own.
    Shared(BlobId),
}

impl fmt::Display for BlobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own { map, end } => write!(f, "map {map} in front of byte {end}"),
            Self::Shared(BlobId(number)) => write!(f, "shared blob {number}"),
        }
    }
}

impl Extent {
    /// A hole of `length` bytes.
    pub fn hole(length: u64) -> Self {
        let content = Content::Hole;
        Self { length, content }
    }

    /// Inline bytes, 1 to [`MAX_INLINE`].
    pub fn inline(bytes: Vec<u8>) -> Self {
        let length = bytes.len() as u64;
        let content = Content::Inline(bytes);
        Self { length, content }
    }

    /// All of a blob that no other extent shows.
    pub fn own(blob: Blob) -> Self {
        let length = blob.raw.into();
        let content = Content::Own { blob, skip: 0 };
        Self { length, content }
    }
}
