//! Rows in a segment summary, in whichever version they are encoded.

/// Most bytes of a summary's rows before compression, which bounds the memory for decoding untrusted bytes.
pub(crate) const MAX_RAW: usize = 8 << 20;

/// A row as of the summary: a key and its value, or `None` if it was deleted.
pub(crate) type Row = (Vec<u8>, Option<Vec<u8>>);

/// Bytes of a row before compression.
pub(crate) fn raw_bytes(key: &[u8], value: Option<&[u8]>) -> usize {
    8 + key.len() + value.map_or(0, <[u8]>::len)
}
