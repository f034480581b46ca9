//! Lookup of a blob by its name, for the cleaner and the checks.

use crate::Result;
use crate::rows::{read_blob_row, read_extent_row};
use kv::Kv;
use object::{Blob, BlobId, BlobName, Content, Extent};

/// A blob together with the row that holds it.
#[derive(Clone, PartialEq)]
pub(crate) enum Found {
    /// In the row of its only extent: map, end of the extent, the extent, its blob.
    Own(u64, u64, Extent, Blob),
    /// In a row of its own.
    Shared(BlobId, Blob),
}

impl Found {
    pub fn look_up(kv: &Kv, name: BlobName) -> Result<Option<Self>> {
        match name {
            BlobName::Own { map, end } => {
                let extent = read_extent_row(kv, map, end)?;
                Ok(extent.and_then(|extent| match &extent.content {
                    Content::Own { blob, .. } => {
                        let blob = blob.clone();
                        Some(Self::Own(map, end, extent, blob))
                    }
                    _ => None,
                }))
            }
            BlobName::Shared(id) => {
                let shared = read_blob_row(kv, id)?;
                Ok(shared.map(|shared| Self::Shared(id, shared.blob)))
            }
        }
    }

    pub fn blob(&self) -> &Blob {
        match self {
            Self::Own(.., blob) | Self::Shared(_, blob) => blob,
        }
    }
}
