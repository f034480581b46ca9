//! Decodes a record into named fields. Bytes that cannot be decoded give `None`.

use crate::format::copied::CopiedRecord;
use crate::format::key::{self, Holder};
use crate::format::kind::Kind;
use crate::format::onode::Onode;
use crate::format::record::{
    CollectionRecord, SuperRecord, decode_counters, decode_name, decode_number,
};
use crate::format::scrub::{DamageRecord, ScrubRecord};
use crate::format::{blob, extent, retired, summary, waiting};
use crate::{Attributes, Name};
use object::{Blob, Content, Extent};
use serde_json::{Map, Value, json};

/// Field names and values.
pub type Fields = Map<String, Value>;

fn fields(value: Value) -> Fields {
    match value {
        Value::Object(fields) => fields,
        _ => Fields::new(),
    }
}

/// The fields of the key and those of the value, each decoded by itself.
pub fn decoded(key: &[u8], value: &[u8]) -> (Option<Fields>, Option<Fields>) {
    let (name, said) = match key.first() {
        Some(&key::SUPER) => (super_key(key), super_value(key, value)),
        Some(&key::COLLECTION) => {
            let name = std::str::from_utf8(&key[1..]).ok();
            let name = name.map(|name| json!({ "collection": name }));
            (name, CollectionRecord::decode(value).map(collection))
        }
        Some(&key::ONODE | &key::HASHED_ONODE) => {
            let name = key::parse_onode(key).map(|(holder, name)| onode_key(holder, name));
            (name, Onode::decode(value).map(|found| onode(&found)))
        }
        Some(&key::EXTENT) => {
            let name = key::parse_extent(key).map(|(map, end)| json!({ "map": map, "end": end }));
            (
                name,
                extent::decode(value).map(|found| extent_value(&found)),
            )
        }
        Some(&key::BLOB) => {
            let name = key::parse_blob(key).map(|id| json!({ "blob": id.0 }));
            (name, blob::decode_shared(value).map(|found| {
                let steps = found.references.steps();
                json!({ "map": found.map, "references": steps, "blob": blob_value(&found.blob) })
            }))
        }
        Some(&key::CLEANING) => {
            let at = key::parse_cleaning(key);
            let name = at.map(|at| json!({ "zone": at.zone, "offset": at.offset }));
            (
                name,
                decode_name(value).map(|name| json!({ "of": name.to_string() })),
            )
        }
        Some(&key::FREELIST) => {
            let name = key::parse_freelist(key).map(|zone| json!({ "zone": zone }));
            let counters = decode_counters(value);
            (
                name,
                counters.map(|(written, dead)| json!({ "written": written, "dead": dead })),
            )
        }
        Some(&key::SUMMARIES) => {
            let name = key::parse_summaries(key).map(|zone| json!({ "zone": zone }));
            let places = summary::decode_places(value);
            (
                name,
                places.map(|places| {
                    let places = places
                        .iter()
                        .map(|place| json!({ "block": place.0, "bytes": place.1 }));
                    json!({ "summaries": places.collect::<Vec<_>>() })
                }),
            )
        }
        Some(&key::DAMAGE) => {
            let at = key::parse_damage(key);
            let name = at.map(|at| json!({ "zone": at.zone, "offset": at.offset }));
            let said = DamageRecord::decode(value).map(|damage| {
                json!({
                    "bytes": damage.length, "is_mismatch": damage.is_mismatch,
                    "found_micros": damage.found_micros,
                })
            });
            (name, said)
        }
        Some(&key::OMAP) => {
            let name = key::parse_omap(key);
            let name = name.map(|(omap, name)| json!({ "omap": omap, "key": Name::from(name) }));
            (name, Some(json!({ "value": Name::from(value) })))
        }
        Some(&key::DOOMED) => {
            let name = key::parse_doomed(key).map(|map| json!({ "map": map }));
            (name, value.is_empty().then(|| json!({})))
        }
        _ => (None, None),
    };
    (name.map(fields), said.map(fields))
}

/// Key of a fact about the store as a whole.
fn super_key(key: &[u8]) -> Option<Value> {
    let known = [
        key::SUPER_FORMAT,
        key::SUPER_NEXT_NUMBER,
        key::SUPER_NEXT_COLLECTION,
        key::SUPER_INLINE,
        key::SUPER_SCRUB,
        key::SUPER_SCRUB_STOPPED,
        key::SUPER_SUMMARIES,
        key::SUPER_WAITING,
        key::SUPER_SALVAGE,
        key::SUPER_RETIRED,
        key::SUPER_REVISED,
    ];
    let name = known.contains(&key).then(|| std::str::from_utf8(&key[1..]));
    Some(json!({ "of": name?.ok()? }))
}

fn super_value(key: &[u8], value: &[u8]) -> Option<Value> {
    if key == key::SUPER_FORMAT {
        let record = SuperRecord::decode(value)?;
        let uuid = Name::from(&record.uuid).hex();
        return Some(json!({ "version": record.version, "uuid": uuid }));
    }
    if key == key::SUPER_SCRUB {
        let record = ScrubRecord::decode(value)?;
        return Some(json!({
            "metadata_micros": record.metadata_micros, "data_micros": record.data_micros,
            "began_micros": record.began_micros, "next_zone": record.next_zone,
            "bytes_read": record.bytes_read,
        }));
    }
    if key == key::SUPER_SUMMARIES {
        let record = CopiedRecord::decode(value)?;
        return Some(json!({ "batch": record.batch, "is_all": record.is_all }));
    }
    if key == key::SUPER_WAITING {
        let keys = waiting::decode(value)?.into_iter();
        let keys: Vec<String> = keys.map(|key| Name::from(&key).hex()).collect();
        return Some(json!({ "keys": keys }));
    }
    if key == key::SUPER_RETIRED {
        return Some(json!({ "zones": retired::decode(value)? }));
    }
    let number = decode_number(value)?;
    Some(json!({ "is": number.cast_signed() }))
}

fn attributes(attributes: &Attributes) -> Value {
    let all = attributes.iter();
    let all = all.map(|(name, value)| (name.clone(), json!(Name::from(value))));
    Value::Object(all.collect())
}

fn collection(record: CollectionRecord) -> Value {
    let mut said = match record.kind {
        Kind::ByName(number) => json!({ "number": number }),
        Kind::ByHash(hashed) => json!({ "hashed": hashed }),
    };
    said["created_micros"] = json!(record.created_micros);
    said["attributes"] = attributes(&record.attributes);
    said
}

fn onode_key(holder: Holder, name: &[u8]) -> Value {
    let name = Name::from(name);
    match holder {
        Holder::Collection(number) => json!({ "collection_number": number, "object": name }),
        Holder::Hash { family, hash } => {
            json!({ "family": family, "hash": format!("{hash:#010x}"), "object": name })
        }
    }
}

fn onode(onode: &Onode) -> Value {
    let segments = onode.segments.iter();
    let segments = segments.map(|s| json!({ "map": s.map, "start": s.start, "length": s.length }));
    json!({
        "size": onode.size(),
        "modified_micros": onode.modified_micros,
        "omap": onode.omap,
        "segments": segments.collect::<Vec<_>>(),
        "attributes": attributes(&onode.attributes),
    })
}

fn extent_value(extent: &Extent) -> Value {
    let length = extent.length;
    match &extent.content {
        Content::Hole => json!({ "length": length, "content": "hole" }),
        Content::Inline(bytes) => {
            json!({ "length": length, "content": "inline", "bytes": Name::from(bytes).hex() })
        }
        Content::Own { blob, skip } => {
            let blob = blob_value(blob);
            json!({ "length": length, "content": "own blob", "skip": skip, "blob": blob })
        }
        Content::Shared { blob, skip } => {
            json!({ "length": length, "content": "shared blob", "skip": skip, "blob": blob.0 })
        }
    }
}

fn blob_value(blob: &Blob) -> Value {
    let fragments = blob.fragments.iter().map(|fragment| match fragment.at {
        Some(at) => json!({ "zone": at.zone, "offset": at.offset, "length": fragment.length }),
        None => json!({ "released": fragment.length }),
    });
    let sums = blob.checksums.iter().map(|sum| format!("{sum:08x}"));
    json!({
        "codec": format!("{:?}", blob.codec).to_lowercase(),
        "raw": blob.raw,
        "fragments": fragments.collect::<Vec<_>>(),
        "checksum": format!("{:?}", blob.checksum_kind).to_lowercase(),
        "checksum_block": blob.checksum_block.bytes(),
        "checksums": sums.collect::<Vec<_>>(),
    })
}
