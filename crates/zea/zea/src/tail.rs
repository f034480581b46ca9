//! Finds the last complete extent of a zone: directly below the write pointer, or, if a put was incomplete or
//! the zone was finished early, the first one found by a backward scan.

use crate::error::Result;
use crate::format::label::COPIES;
use crate::format::metadata::{Decoded, Metadata};
use crate::reading::ZoneReader;

/// Most blocks of one read of the backward scan; the first read is one block.
const STRIDE: u32 = 256;

/// Metadata of the last complete extent before block `end`; `None` if there is none.
pub(crate) fn last(reader: &ZoneReader, end: u32) -> Result<Option<Metadata>> {
    let mut end = end;
    let mut stride = 1;
    while end > COPIES {
        let from = end.saturating_sub(stride).max(COPIES);
        let bytes = reader.read_run(from, end - from)?;
        let blocks = bytes.chunks(reader.block_size()).zip(from..end).rev();
        for (bytes, block) in blocks {
            if let Decoded::Valid(metadata) = reader.decode(bytes, block) {
                return Ok(Some(metadata));
            }
        }
        (end, stride) = (from, STRIDE);
    }
    Ok(None)
}
