//! A row in a segment summary, however it is kept.

/// Most bytes of a summary's rows before compression: bytes from outside unpack to no more.
pub(crate) const MAX_RAW: usize = 8 << 20;

/// A row as it was when the summary was written: a key and its value, or that it had been deleted.
pub(crate) type Row = (Vec<u8>, Option<Vec<u8>>);

/// Bytes of a row before compression.
pub(crate) fn raw_bytes(key: &[u8], value: Option<&[u8]>) -> usize {
    8 + key.len() + value.map_or(0, <[u8]>::len)
}
