//! The last whole extent of a zone: in front of the write pointer, or, where a put was cut short or the zone
//! was finished early, the first that comes looking backwards.

use crate::error::Result;
use crate::format::label::COPIES;
use crate::format::metadata::{Decoded, Metadata};
use crate::reading::ZoneReader;

/// Blocks that are read at a time, looking backwards; the first look is at one.
const STRIDE: u32 = 256;

/// Metadata of the last whole extent in front of block `end`; `None` if there is none.
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
