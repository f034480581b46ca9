//! What the store keeps in its key-value database, byte for byte: encode and decode, nothing else.
//!
//! Described in `docs/format/store.md`. Keys are big-endian, so that their byte order is their
//! order; values are little-endian. Decoders take any bytes and answer `None` for what makes no
//! sense.

pub(crate) mod bytes;
pub(crate) mod extent;
pub(crate) mod key;
pub(crate) mod onode;
pub(crate) mod record;

/// The version of everything described here; a store of another one is refused.
pub const FORMAT_VERSION: u32 = 1;
