//! Compares `docs/format/bluefs.md` with the code: offsets, sizes, types, and the examples.

use bluefs::format::FORMAT_VERSION;
use bluefs::format::journal::{self, Place};
use bluefs::format::log_record::{self, Mark};
use bluefs::format::operation::{ExtentEntry, JournalOperation, Kind};
use bluefs::format::superblock::{self, Role, Superblock};
use zone::{ZoneAddress, ZoneId};

const DOCUMENT: &str = include_str!("../../../../docs/format/bluefs.md");

/// The rows of the first table after `heading` whose first cell is a number.
fn rows(heading: &str) -> Vec<Vec<String>> {
    let from = DOCUMENT
        .find(heading)
        .unwrap_or_else(|| panic!("no {heading}"));
    let lines = DOCUMENT[from..].lines().skip(1);
    let table = lines
        .skip_while(|l| !l.starts_with('|'))
        .take_while(|l| l.starts_with('|'));
    table
        .map(|l| {
            l.trim_matches('|')
                .split('|')
                .map(|c| c.trim().to_owned())
                .collect::<Vec<_>>()
        })
        .filter(|cells| cells[0].parse::<u64>().is_ok())
        .collect()
}

/// Byte range of the field whose name begins with `field`.
fn place(heading: &str, field: &str) -> std::ops::Range<usize> {
    let row = rows(heading)
        .into_iter()
        .find(|r| r[2].starts_with(field))
        .unwrap_or_else(|| panic!("no {field} in {heading}"));
    let offset: usize = row[0].parse().unwrap();
    offset..offset + row[1].parse::<usize>().unwrap()
}

fn number(bytes: &[u8]) -> u64 {
    let mut padded = [0; 8];
    padded[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(padded)
}

#[track_caller]
fn covers(heading: &str, total: usize) {
    let mut next = 0;
    for row in rows(heading) {
        assert_eq!(row[0], next.to_string(), "{heading}");
        next += row[1].parse::<usize>().unwrap();
    }
    assert_eq!(next, total, "{heading}");
    assert!(
        heading.contains(&total.to_string()) || total == 32,
        "{heading}"
    );
}

#[test]
fn superblocks() {
    const H: &str = "## Superblock (104 bytes";
    covers(H, superblock::ENCODED);
    let block = Superblock {
        version: bluefs::FORMAT_VERSION,
        uuid: [0xcd; 16],
        role: Role::Shared,
        generation: 11,
        block_size: 512,
        zone_size: 13 << 20,
        zone_capacity: 12 << 20,
        zone_count: 14,
        conventional_parts: 20,
        journal_epoch: 15,
        journal_zone: ZoneId(16),
        journal_frames: 17,
        spare_zone: ZoneId(18),
        journal_twin: Some(ZoneId(19)),
        spare_twin: Some(ZoneId(20)),
    }
    .encode();
    assert_eq!(&block[place(H, "magic `ZSBLUEFS`")], superblock::MAGIC);
    assert_eq!(&block[place(H, "UUID")], [0xcd; 16]);
    for (field, expected) in [
        ("format version, 7", u64::from(FORMAT_VERSION)),
        ("generation", 11),
        ("zone size", 13 << 20),
        ("zone capacity", 12 << 20),
        ("number of zones", 14),
        ("block size", 512),
        ("epoch", 15),
        ("frames", 17),
        ("zone in which", 16),
        ("role", 2),
        ("spare zone", 18),
        ("further parts", 19),
        ("second copy of the journal", 19),
        ("second copy of the spare", 20),
    ] {
        assert_eq!(number(&block[place(H, field)]), expected, "{field}");
    }
}

#[test]
fn frames() {
    const H: &str = "## Journal frame (40 bytes";
    covers(H, journal::HEADER);
    let place_ = Place {
        epoch: 3,
        sequence: 4,
        previous: 5,
    };
    let (frame, sum) = journal::encode_frame(place_, 6, &[1, 2, 3], 512);
    assert_eq!(&frame[place(H, "magic `BFJL`")], journal::MAGIC);
    for (field, expected) in [
        ("checksum of everything", u64::from(sum)),
        ("epoch", 3),
        ("number", 4),
        ("bytes of operations, at most 262,144", 3),
        ("checksum of the frame before", 5),
        ("frames that were durable", 6),
    ] {
        assert_eq!(number(&frame[place(H, field)]), expected, "{field}");
    }
    assert_eq!(journal::MAX_PAYLOAD, 262_144);
}

#[test]
fn records() {
    const H: &str = "## Log record (84 bytes";
    covers(H, log_record::HEADER);
    let mark = Mark {
        epoch: 10,
        frames: 11,
        run: 12,
        other: ZoneAddress::new(ZoneId(14), 13),
        other_run_id: 15,
    };
    let at = ZoneAddress::new(ZoneId(21), 22 * 512);
    let record = log_record::encode(at, 7, 9, 6, mark, b"hello", 512);
    assert_eq!(&record[place(H, "magic `BFWR`")], log_record::MAGIC);
    for (field, expected) in [
        ("inode", 7),
        ("offset of the payload", 6),
        ("bytes of payload, at most 1,048,492", 5),
        ("run id", 9),
        ("mark: epoch", 10),
        ("mark: frames", 11),
        ("mark: of this run", 12),
        ("mark: of another run", 13),
        ("mark: zone of", 14),
        ("mark: run id of", 15),
        ("own place: offset", 22 * 512),
        ("own place: zone", 21),
    ] {
        assert_eq!(number(&record[place(H, field)]), expected, "{field}");
    }
    assert_eq!(log_record::MAX_PAYLOAD, 1_048_492);
    let record = log_record::encode(at, 7, 9, 0, mark, b"hello", 512);
    let hex: Vec<_> = record[..89].iter().map(|b| format!("{b:02x}")).collect();
    assert!(
        DOCUMENT.contains(&format!("`{}`", hex.join(" "))),
        "{}",
        hex.join(" ")
    );
}

#[test]
fn operations_and_extents() {
    let at = ZoneAddress::new(ZoneId(21), 22 * 512);
    let entry = ExtentEntry {
        file_offset: 23,
        at,
        length: 24,
        checksum: 25,
    };
    let path = || String::from("/x");
    let (inode, modified_micros, zone) = (1, 2, ZoneId(5));
    let all = [
        JournalOperation::MakeDirectory { path: path() },
        JournalOperation::RemoveDirectory { path: path() },
        JournalOperation::Create {
            inode,
            kind: Kind::Plain,
            modified_micros,
            path: path(),
        },
        JournalOperation::Link {
            inode,
            path: path(),
        },
        JournalOperation::Unlink { path: path() },
        JournalOperation::Rename {
            from: path(),
            to: path(),
        },
        JournalOperation::Extend {
            inode,
            modified_micros,
            extents: vec![entry],
        },
        JournalOperation::Move {
            inode,
            extents: vec![entry],
        },
        JournalOperation::LogSegment {
            inode,
            file_offset: 0,
            offset: 0,
            end: 0,
            zone,
            run_id: 0,
        },
        JournalOperation::LogTruncate { inode, size: 0 },
        JournalOperation::NextZone { zone },
        JournalOperation::NextInode { inode },
        JournalOperation::Truncate {
            inode,
            modified_micros,
            size: 0,
        },
        JournalOperation::Take { zone },
        JournalOperation::Give { zone },
        JournalOperation::WrittenEnd { at, run_id: 0 },
        JournalOperation::Twin { zone, twin: zone },
    ];
    let documented = rows("## Operations");
    assert_eq!(documented.len(), all.len());
    for (row, operation) in documented.iter().zip(&all) {
        let mut out = Vec::new();
        operation.encode(&mut out);
        assert_eq!(row[0], out[0].to_string(), "{operation:?}");
        let words: String = row[1].split(' ').collect();
        let name = format!("{operation:?}").to_lowercase();
        assert!(name.starts_with(&words), "{words} is {name}");
        // The sizes of the fields that the row names add up to the encoded length.
        let sizes = row[2].matches("u64").count() * 8 + row[2].matches("u32").count() * 4;
        let paths = row[2].matches("path").count() * 4;
        let kind = usize::from(row[2].contains("u8 kind"));
        let extents = if row[2].contains("extents") {
            4 + 32
        } else {
            0
        };
        assert_eq!(
            out.len(),
            1 + sizes + paths + kind + extents,
            "{operation:?}"
        );
    }
    const H: &str = "Extents are a u32 count and 32 bytes each";
    covers(H, 32);
    let mut out = Vec::new();
    all[7].encode(&mut out);
    let extent = &out[1 + 8 + 4..];
    for (field, expected) in [
        ("offset in the file", 23),
        ("offset in the zone", 22 * 512),
        ("bytes", 24),
        ("zone", 21),
        ("checksum", 25),
    ] {
        assert_eq!(number(&extent[place(H, field)]), expected, "{field}");
    }
    let mut out = Vec::new();
    all[13].encode(&mut out);
    let hex: Vec<_> = out.iter().map(|b| format!("{b:02x}")).collect();
    assert!(DOCUMENT.contains(&format!("`{}` takes zone 5", hex.join(" "))));
}
