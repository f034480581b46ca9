//! Records of the store's key-value database: encode and decode, nothing else.
//!
//! Described in `docs/format/store.md`. Keys are big-endian, so that their byte order is their order; values are
//! little-endian. Decoders accept any bytes and return `None` for invalid ones.

pub(crate) mod blob;
pub(crate) mod copied;
pub(crate) mod extent;
pub(crate) mod key;
pub(crate) mod kind;
pub(crate) mod metadata_damage;
pub(crate) mod note;
pub(crate) mod onode;
pub(crate) mod record;
pub(crate) mod retired;
pub(crate) mod scrub;
pub(crate) mod summary;
mod summary_columns;
mod summary_row;
#[cfg(test)]
mod tests;
pub(crate) mod waiting;

/// Version of the whole format; a store of another version is refused.
pub const FORMAT_VERSION: u32 = 3;

/// Runs every decoder on `bytes`; what decodes must encode to the same bytes again.
pub(crate) fn fuzz(bytes: &[u8]) {
    let again = [
        extent::decode(bytes).map(|e| extent::encode(&e)),
        blob::decode_shared(bytes).map(|b| blob::encode_shared(&b)),
        onode::Onode::decode(bytes).map(|o| o.encode()),
        record::CollectionRecord::decode(bytes).map(|c| c.encode()),
        record::decode_name(bytes).map(record::encode_name),
        note::BatchNote::decode(bytes).map(|n| n.encode()),
        record::decode_counters(bytes).map(|(w, d)| record::encode_counters(w, d)),
        summary::decode_places(bytes).map(|places| summary::encode_places(&places)),
        scrub::ScrubRecord::decode(bytes).map(|r| r.encode()),
        scrub::DamageRecord::decode(bytes).map(|r| r.encode()),
        copied::CopiedRecord::decode(bytes).map(|r| r.encode()),
        retired::decode(bytes).map(|zones| retired::encode(&zones)),
        waiting::decode(bytes).map(|keys| waiting::encode(&keys)),
        metadata_damage::decode(bytes).map(|entries| metadata_damage::encode(&entries)),
    ];
    assert!(again.into_iter().flatten().all(|again| again == bytes));
    let _ = (
        record::SuperRecord::decode(bytes),
        record::decode_number(bytes),
    );
    let _ = (
        key::parse_onode(bytes),
        key::parse_extent(bytes),
        key::parse_blob(bytes),
        key::parse_cleaning(bytes),
    );
    let _ = (key::parse_freelist(bytes), key::parse_doomed(bytes));
    let _ = key::parse_omap(bytes);
    let _ = (key::parse_summaries(bytes), summary::parse(bytes));
}
