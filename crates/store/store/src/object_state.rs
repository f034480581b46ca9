//! A digest of an object's metadata, by which callers tell whether the object has changed.

use crate::Result;
use crate::extent_reader::ObjectAt;
use crate::format::onode::Onode;
use object::{Blob, ChecksumKind, Content, Extent};
use xxhash_rust::xxh3::Xxh3;

/// Bytes of an object whose extents are looked up together.
const SPAN: u64 = 64 << 20;

impl ObjectAt<'_> {
    /// A digest of the object's metadata, without its name and its omap. It changes with the object, because it
    /// includes times, maps and checksums. It stays when the cleaner moves data, unless that has no checksums. Two
    /// objects differ in it even if their contents are the same.
    pub fn state(&self) -> Result<u128> {
        let mut digest = Xxh3::new();
        let onode = Onode {
            omap: None,
            attributes: self.info().attributes.clone(),
            ..self.onode.clone()
        };
        digest.update(&onode.encode());
        for segment in &self.onode.segments {
            let (mut from, end) = (segment.start, segment.start + segment.length);
            while from < end {
                let to = end.min(from.saturating_add(SPAN));
                let found = self.extents(segment.map, from, to);
                let (extents, _reading) = found.map_err(|error| error.of_object(&self.label))?;
                for (offset, extent) in &extents {
                    // An extent that begins before `from` was included with the span before.
                    if *offset >= from || from == segment.start {
                        add_extent(&mut digest, *offset, extent);
                    }
                }
                from = to;
            }
        }
        Ok(digest.digest128())
    }
}

fn add_extent(digest: &mut Xxh3, offset: u64, extent: &Extent) {
    digest.update(&offset.to_le_bytes());
    digest.update(&extent.length.to_le_bytes());
    match &extent.content {
        Content::Hole => digest.update(&[0]),
        Content::Inline(bytes) => {
            digest.update(&[1]);
            digest.update(bytes);
        }
        Content::Own { blob, skip } => add_blob(digest, *skip, blob),
        // Resolved to own blobs when the extents were looked up.
        Content::Shared { .. } => {}
    }
}

fn add_blob(digest: &mut Xxh3, skip: u32, blob: &Blob) {
    digest.update(&[2, blob.codec as u8, blob.checksum_kind as u8]);
    digest.update(&[blob.checksum_block.shift()]);
    digest.update(&skip.to_le_bytes());
    digest.update(&blob.raw.to_le_bytes());
    for checksum in &blob.checksums {
        digest.update(&checksum.to_le_bytes());
    }
    if blob.checksum_kind == ChecksumKind::None {
        for at in blob.fragments.iter().filter_map(|fragment| fragment.at) {
            digest.update(&at.zone.0.to_le_bytes());
            digest.update(&at.offset.to_le_bytes());
        }
    }
}
