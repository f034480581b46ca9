//! The document, the code, a second decoder and old rows, against each other.

mod columns;
mod document;
mod golden;
mod oracle;

use super::kind::Kind;
use super::note::BatchNote;
use super::onode::Onode;
use super::record::{CollectionRecord, SuperRecord, decode_counters, decode_name};
use super::{blob, extent, summary};
use crate::{Attributes, Hashed};
use object::{Blob, BlobName, Content};

/// The numbers of a record in the order in which the document has them; bytes of names and values count as
/// numbers too. `None`: refused.
type Fields = Option<Vec<u64>>;

fn put_bytes(fields: &mut Vec<u64>, bytes: &[u8]) {
    fields.extend(bytes.iter().map(|byte| u64::from(*byte)));
}

fn put_attributes(fields: &mut Vec<u64>, attributes: &Attributes) {
    fields.push(attributes.len() as u64);
    for (name, value) in attributes {
        fields.push(name.len() as u64);
        put_bytes(fields, name.as_bytes());
        fields.push(value.len() as u64);
        put_bytes(fields, value);
    }
}

fn put_blob(fields: &mut Vec<u64>, blob: &Blob) {
    let shift = blob.checksum_block.shift();
    let head = [
        blob.codec as u64,
        blob.checksum_kind as u64,
        shift.into(),
        blob.raw.into(),
    ];
    fields.extend(head);
    fields.push(blob.fragments.len() as u64);
    for fragment in &blob.fragments {
        let (zone, offset) = fragment
            .at
            .map_or((u32::MAX, 0), |at| (at.zone.0, at.offset));
        fields.extend([zone.into(), fragment.length.into(), offset]);
    }
    fields.extend(blob.checksums.iter().map(|sum| u64::from(*sum)));
}

/// What the code makes of a record.
fn decoded(record: &str, value: &[u8]) -> Fields {
    let mut fields = Vec::new();
    match record {
        "store" => {
            let store = SuperRecord::decode(value)?;
            fields.push(store.version.into());
            put_bytes(&mut fields, &store.uuid);
        }
        "collection" => {
            let collection = CollectionRecord::decode(value)?;
            match collection.kind {
                Kind::ByName(number) => fields.extend([1, 0, 0, number.into(), 0]),
                Kind::ByHash(Hashed {
                    family,
                    source,
                    prefix,
                }) => {
                    let (bits, first) = (prefix.bits().into(), prefix.first().into());
                    fields.extend([2, bits, source as u64, family.into(), first]);
                }
            }
            fields.push(collection.created_micros);
            put_attributes(&mut fields, &collection.attributes);
        }
        "onode" => {
            let onode = Onode::decode(value)?;
            let omap = onode.omap.unwrap_or(0);
            fields.extend([onode.modified_micros, omap, onode.segments.len() as u64]);
            let segments = onode.segments.iter();
            fields.extend(segments.flat_map(|s| [s.map, s.start, s.length]));
            put_attributes(&mut fields, &onode.attributes);
        }
        "extent" => {
            let extent = extent::decode(value)?;
            match &extent.content {
                Content::Own { blob, skip } => {
                    fields.extend([1, u64::from(*skip), extent.length]);
                    put_blob(&mut fields, blob);
                }
                Content::Inline(bytes) => {
                    fields.push(2);
                    put_bytes(&mut fields, bytes);
                }
                Content::Shared { blob, skip } => {
                    fields.extend([3, u64::from(*skip), extent.length, blob.0]);
                }
                Content::Hole => fields.extend([4, extent.length]),
            }
        }
        "shared" => {
            let shared = blob::decode_shared(value)?;
            let steps = shared.references.steps();
            fields.extend([shared.map.unwrap_or(0), steps.len() as u64]);
            fields.extend(
                steps
                    .iter()
                    .flat_map(|(at, n)| [u64::from(*at), u64::from(*n)]),
            );
            put_blob(&mut fields, &shared.blob);
        }
        "name" => match decode_name(value)? {
            BlobName::Own { map, end } => fields.extend([1, map, end]),
            BlobName::Shared(id) => fields.extend([2, id.0]),
        },
        "counters" => {
            let (written, dead) = decode_counters(value)?;
            fields.extend([written.cast_unsigned(), dead.cast_unsigned()]);
        }
        "note" => {
            let note = BatchNote::decode(value)?;
            fields.extend([note.number, note.acknowledged]);
            for piece in &note.pieces {
                fields.extend([piece.at.zone.0.into(), piece.at.offset, piece.length.into()]);
                let shift = piece.checksum_block.shift();
                fields.extend([piece.checksum_kind as u64, shift.into()]);
                fields.extend(piece.checksums.iter().map(|sum| u64::from(*sum)));
            }
        }
        "places" => {
            let places = summary::decode_places(value)?.into_iter();
            fields.extend(places.flat_map(|(block, bytes)| [u64::from(block), u64::from(bytes)]));
        }
        "summary" => {
            let (uuid, summary) = summary::parse(value)?;
            put_bytes(&mut fields, &uuid);
            fields.extend([summary.sequence, summary.rows.len() as u64]);
            for (key, value) in &summary.rows {
                fields.extend([key.len() as u64, value.is_none().into()]);
                let value = value.as_deref().unwrap_or_default();
                fields.push(value.len() as u64);
                put_bytes(&mut fields, key);
                put_bytes(&mut fields, value);
            }
        }
        other => panic!("no record {other}"),
    }
    Some(fields)
}
