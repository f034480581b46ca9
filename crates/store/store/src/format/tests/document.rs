//! Compares the tables of `docs/format/store.md` with what the code writes.

use crate::format::copied::CopiedRecord;
use crate::format::kind::Kind;
use crate::format::metadata_damage::{self, Entry};
use crate::format::note::{BatchNote, Piece};
use crate::format::onode::Onode;
use crate::format::record::{CollectionRecord, SuperRecord, encode_name};
use crate::format::scrub::{DamageRecord, ScrubRecord};
use crate::format::{FORMAT_VERSION, blob, extent, key, summary};
use crate::space::KEPT_FOR_SUMMARIES;
use crate::{Attributes, HashPrefix, HashSource, Hashed};
use object::{
    Blob, BlobId, BlobName, ChecksumBlock, ChecksumKind, Codec, Content, Extent, Fragment,
    MAX_INLINE, MAX_STORED, References, Segment, SharedBlob,
};
use std::ops::Range;
use zone::{ZoneAddress, ZoneId};

const DOCUMENT: &str = include_str!("../../../../../../docs/format/store.md");

/// The cells of the first table behind `heading`, without its head.
fn table(heading: &str) -> Vec<Vec<&'static str>> {
    let from = DOCUMENT.find(heading);
    let from = from.unwrap_or_else(|| panic!("no {heading}"));
    let lines = DOCUMENT[from..].lines().skip(1);
    let table = lines.skip_while(|l| !l.starts_with('|'));
    let table = table.take_while(|l| l.starts_with('|')).skip(2);
    let cells = |l: &'static str| l.trim_matches('|').split('|').map(str::trim).collect();
    table.map(cells).collect()
}

/// Checks that the table's rows follow each other, and that each has its value in `bytes`.
fn covers(heading: &str, bytes: &[u8], expected: &[(&str, u64)]) {
    let rows = table(heading);
    let places: Vec<Range<usize>> = rows
        .iter()
        .map(|row| {
            let offset: usize = row[0].parse().unwrap();
            offset..offset + row[1].parse::<usize>().unwrap()
        })
        .collect();
    assert_eq!(rows.len(), expected.len(), "{heading}");
    let mut next = 0;
    for ((row, place), (field, value)) in rows.iter().zip(places).zip(expected) {
        assert_eq!(place.start, next, "{heading}: {field}");
        assert!(
            row[2].starts_with(field),
            "{heading}: {} is not {field}",
            row[2]
        );
        let number = bytes[place.clone()].iter().rev();
        let number = number.fold(0u128, |sum, byte| (sum << 8) + u128::from(*byte));
        assert_eq!(number, u128::from(*value), "{heading}: {field}");
        next = place.end;
    }
    let size = format!("({next} bytes");
    let line = &DOCUMENT[DOCUMENT.find(heading).unwrap()..];
    assert!(
        line.lines().next().unwrap().contains(&size),
        "{heading}: {next}"
    );
}

fn sample() -> Blob {
    Blob {
        codec: Codec::Zstd,
        raw: 70_000,
        fragments: vec![Fragment {
            at: Some(ZoneAddress::new(ZoneId(21), 22 * 4096)),
            length: 50_000,
        }],
        checksum_kind: ChecksumKind::Xxh3,
        checksum_block: ChecksumBlock::from_shift(15).unwrap(),
        checksums: vec![31, 32],
    }
}

#[test]
fn room_for_summaries() {
    let kept = format!(
        "{},{:03}",
        KEPT_FOR_SUMMARIES / 1000,
        KEPT_FOR_SUMMARIES % 1000
    );
    assert!(DOCUMENT.contains(&format!("summaries take 1/{kept} of the bytes")));
    assert!(DOCUMENT.contains(&format!("describe {kept} times a block")));
}

#[test]
fn store_collections_and_onodes() {
    let mut uuid = [0; 16];
    uuid[0] = 9;
    let version = FORMAT_VERSION;
    let store = SuperRecord { version, uuid }.encode();
    covers(
        "## Store record (20",
        &store,
        &[("format version, 3", version.into()), ("UUID", 9)],
    );
    let collection = |kind| {
        let (created_micros, attributes) = (9, Attributes::new());
        let record = CollectionRecord {
            kind,
            created_micros,
            attributes,
        };
        record.encode()
    };
    let fields = |kind, bits, source, prefix| {
        [
            ("record version, 1", 1),
            ("kind: 1, by name; 2, by hash", kind),
            ("bits of the prefix, 0 to 32", bits),
            ("source of hashes", source),
            ("by name the collection number; by hash the family", 7),
            ("prefix: the lowest hash", prefix),
            ("zero", 0),
            ("created", 9),
        ]
    };
    let heading = "## Collection record (24";
    let by_name = collection(Kind::ByName(7));
    covers(heading, &by_name, &fields(1, 0, 0, 0));
    let hashed = |source| Hashed {
        family: 7,
        source,
        prefix: HashPrefix::new(3, 0xa000_0000).unwrap(),
    };
    let by_hash = collection(Kind::ByHash(hashed(HashSource::Name)));
    covers(heading, &by_hash, &fields(2, 3, 2, 0xa000_0000));
    let by_hash = collection(Kind::ByHash(hashed(HashSource::Xxh3)));
    let hex: Vec<_> = by_hash.iter().map(|b| format!("{b:02x}")).collect();
    assert!(DOCUMENT.contains(&format!("`{}`", hex.join(" "))));
    let onode = Onode {
        modified_micros: 5,
        omap: Some(6),
        segments: vec![Segment {
            map: 11,
            start: 12,
            length: 13,
        }],
        attributes: Attributes::new(),
    };
    let bytes = onode.encode();
    let fields = [
        ("record version, 1", 1),
        ("zero", 0),
        ("modified", 5),
        ("omap number", 6),
        ("number of segments", 1),
    ];
    covers("## Onode (24", &bytes, &fields);
    let fields = [("map", 11), ("start", 12), ("length", 13)];
    covers("Then for each segment (24", &bytes[24..], &fields);
}

#[test]
fn extents_and_blobs() {
    let kinds = table("## Extent kinds");
    let content = Content::Own {
        blob: sample(),
        skip: 3,
    };
    let own = extent::encode(&Extent { length: 4, content });
    let content = Content::Shared {
        blob: BlobId(6),
        skip: 3,
    };
    let shared = extent::encode(&Extent { length: 4, content });
    let inline = extent::encode(&Extent::inline(b"hello".to_vec()));
    let hole = extent::encode(&Extent::hole(1 << 40));
    let words = ["own blob", "inline", "shared blob", "hole"];
    for ((row, bytes), word) in kinds.iter().zip([&own, &inline, &shared, &hole]).zip(words) {
        assert_eq!((row[0], row[1]), (bytes[0].to_string().as_str(), word));
        // Each number in the list of fields has its size.
        let fixed = 1 + 3 + 4 * row[2].matches("u32").count() + 8 * row[2].matches("u64").count();
        let rest = match word {
            "own blob" => bytes.len() - 12,
            "inline" => 5,
            _ => 0,
        };
        assert_eq!(bytes.len(), fixed + rest, "{word}");
    }
    let hex: Vec<_> = inline.iter().map(|b| format!("{b:02x}")).collect();
    assert!(DOCUMENT.contains(&format!("`{}`", hex.join(" "))));
    assert!(DOCUMENT.contains("1 to 4,096 bytes") && MAX_INLINE == 4_096);
    assert!(DOCUMENT.contains("1 to 4,194,304") && MAX_STORED == 4_194_304);
    let fields = [
        ("codec: 0 none, 1 zstd", 1),
        (
            "kind of checksum: 0 none, 1 crc32c, 2 the low half of XXH3",
            2,
        ),
        ("log2 of the checksum block, 12 to 17", 15),
        ("zero", 0),
        ("raw bytes", 70_000),
        ("number of fragments", 1),
    ];
    covers("## Blob (12", &own[12..], &fields);
    let fields = [("zone", 21), ("length", 50_000), ("byte offset", 22 * 4096)];
    covers("Then for each fragment (16", &own[24..], &fields);
    assert_eq!(own.len(), 12 + 12 + 16 + 2 * 4);
    let blocks: Vec<u8> = ChecksumBlock::all().map(ChecksumBlock::shift).collect();
    assert_eq!((blocks[0], blocks.last()), (12, Some(&17)));
}

#[test]
fn shared_blobs_names_and_notes() {
    let shared = SharedBlob {
        blob: sample(),
        map: Some(41),
        references: References::one(42..70_000),
    };
    let bytes = blob::encode_shared(&shared);
    let fields = [
        ("record version, 1", 1),
        ("zero", 0),
        ("the only map", 41),
        ("number of steps", 2),
    ];
    covers("## Shared blob (16", &bytes, &fields);
    let fields = [("raw byte", 42), ("from there on", 1)];
    covers("Then for each step (8", &bytes[16..], &fields);
    let names = [
        BlobName::Own { map: 1, end: 2 },
        BlobName::Shared(BlobId(3)),
    ];
    for (row, name) in table("## Name of a blob").iter().zip(names) {
        let bytes = encode_name(name);
        assert_eq!(row[0], bytes[0].to_string());
        assert_eq!(bytes.len(), 4 + 8 * row[2].matches("u64").count());
    }
    let at = ZoneAddress::new(ZoneId(51), 52);
    let note = BatchNote {
        number: 61,
        acknowledged: 60,
        pieces: vec![Piece {
            at,
            length: 53,
            checksum_kind: ChecksumKind::Crc32c,
            checksum_block: ChecksumBlock::DEFAULT,
            checksums: vec![54],
        }],
    };
    let bytes = note.encode();
    let fields = [
        ("version, 1", 1),
        ("zero", 0),
        ("number of this batch", 61),
        ("number of a batch", 60),
    ];
    covers("## Batch note (20", &bytes, &fields);
    let fields = [
        ("zone", 51),
        ("byte offset", 52),
        ("length", 53),
        ("kind of checksum", 1),
        ("log2 of the checksum block", 16),
        ("zero", 0),
    ];
    covers("data was written to, the piece (20", &bytes[20..], &fields);
}

#[test]
fn summaries_and_their_places() {
    let mut uuid = [0; 16];
    uuid[0] = 71;
    let rows = [(&b"Ckey"[..], Some(&b"value"[..])), (b"Cgone", None)];
    let bytes = summary::encode(uuid, 72, rows.into_iter()).unwrap();
    let number = |at: usize| u64::from(u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()));
    let fields = [
        ("magic `ZSSEGSUM`", u64::from_le_bytes(*b"ZSSEGSUM")),
        ("version, 2", 2),
        ("crc32c", number(12)),
        ("UUID", 71),
        ("sequence", 72),
        ("number of rows", 2),
        ("bytes of the rows before", 8 + 9 + 8 + 5),
        ("stored bytes", bytes.len() as u64 - 64),
        ("codec: 1 in version 1, 2 in version 2", 2),
        ("zero", 0),
    ];
    covers("## Segment summary (64", &bytes, &fields);
    let frame = number(68);
    let first = zstd::decode_all(&bytes[72..72 + frame as usize]).unwrap();
    let fields = [
        ("bytes of the first part", first.len() as u64),
        ("bytes of the zstd frame", frame),
    ];
    covers("Version 2 begins with (8", &bytes[64..], &fields);
    let sizes = table("For each row they hold (8")
        .into_iter()
        .map(|row| row[1]);
    assert_eq!(sizes.collect::<Vec<_>>(), ["2", "2", "4"]);
    let places = summary::encode_places(&[(73, 74)]);
    let fields = [("where it begins", 73), ("its bytes", 74)];
    covers("For each summary in the zone (8", &places, &fields);
}

#[test]
fn what_the_scrub_keeps() {
    let record = ScrubRecord {
        next_zone: 2,
        metadata_micros: 3,
        data_micros: 4,
        began_micros: 5,
        bytes_read: 6,
    };
    let fields = [
        ("version", 1),
        ("zone", 2),
        ("when all metadata", 3),
        ("when all data", 4),
        ("when the pass", 5),
        ("bytes", 6),
    ];
    covers("## Scrub record (40", &record.encode(), &fields);
    assert_eq!(ScrubRecord::decode(&record.encode()), Some(record));
    let copied = CopiedRecord {
        batch: 2,
        is_all: true,
    };
    let fields = [("version", 1), ("1:", 1), ("0", 0), ("batch", 2)];
    covers("## Copied rows (12", &copied.encode(), &fields);
    assert_eq!(CopiedRecord::decode(&copied.encode()), Some(copied));
    let damage = DamageRecord {
        length: 7,
        is_mismatch: false,
        found_micros: 8,
    };
    let fields = [
        ("version", 1),
        ("kind", 2),
        ("0", 0),
        ("how many", 7),
        ("when", 8),
    ];
    covers("## Damage (16", &damage.encode(), &fields);
    assert_eq!(DamageRecord::decode(&damage.encode()), Some(damage));
}

#[test]
fn namespaces() {
    let at = ZoneAddress::new(ZoneId(1), 2);
    let keys = [
        key::SUPER_FORMAT.to_vec(),
        key::SUPER_NEXT_NUMBER.to_vec(),
        key::SUPER_NEXT_COLLECTION.to_vec(),
        key::SUPER_INLINE.to_vec(),
        key::SUPER_SCRUB.to_vec(),
        key::SUPER_SCRUB_STOPPED.to_vec(),
        key::SUPER_SUMMARIES.to_vec(),
        key::SUPER_WAITING.to_vec(),
        key::SUPER_SALVAGE.to_vec(),
        key::SUPER_RETIRED.to_vec(),
        key::SUPER_REVISED.to_vec(),
        key::collection("c"),
        key::onode(1, b"o"),
        key::hashed_onode(1, 2, b"o"),
        key::extent(1, 2),
        key::blob(BlobId(1)),
        key::cleaning(at),
        key::freelist(ZoneId(1)),
        key::summaries(ZoneId(1)),
        key::damage(at),
        key::omap(1, b"k"),
        key::doomed(1),
    ];
    let rows = table("## Namespaces");
    assert_eq!(rows.len(), keys.len());
    for (row, key) in rows.iter().zip(keys) {
        let first = char::from(key[0]);
        assert_eq!(row[0], format!("`{first}`"));
        let name = String::from_utf8_lossy(&key).into_owned();
        let fixed = 4 * row[1].matches("u32").count() + 8 * row[1].matches("u64").count();
        if key[0] == key::SUPER {
            assert_eq!(row[1], format!("`{name}`"));
        } else {
            let text = usize::from(row[1].contains("name"));
            assert_eq!(key.len(), 1 + fixed + text, "{row:?}");
        }
    }
}

#[test]
fn damage_of_metadata() {
    let entry = Entry {
        inode: 5,
        found_micros: 6,
        what: "seven b".to_owned(),
    };
    let bytes = metadata_damage::encode(&[entry]);
    let sum = u32::from_le_bytes(bytes[4..8].try_into().unwrap());
    let fields = [("version, 1", 1), ("crc32c of all of the file", sum.into())];
    covers("## Damage of metadata (8", &bytes, &fields);
    let fields = [
        ("number of the file's inode", 5),
        ("when it was found", 6),
        ("bytes of the text", 7),
    ];
    covers("Then for each entry (18", &bytes[8..], &fields);
}
