//! The bytes of a drive file: what the document says, what the code writes, and what the decoders
//! make of anything else.

use device::file::format::{self, DriveUuid, Entry, FormatError, Header, entry_at, header_at};
use device::rules::RestedZone;
use proptest::prelude::*;
use std::collections::BTreeMap;
use zone::{Geometry, ZoneCondition, ZoneId, ZoneKind};

const DOCUMENT: &str = include_str!("../../../../docs/format/file-drive.md");

/// The drive of the document's worked example.
fn example() -> Header {
    Header {
        version: format::VERSION,
        uuid: DriveUuid(std::array::from_fn(|i| i as u8 * 17)),
        geometry: Geometry {
            block_size: 4096,
            zone_size: 1 << 20,
            zone_capacity: 0xc0000,
            zone_count: 12,
            conventional_zones: 2,
            conventional_parts: 1,
            sequential_kind: ZoneKind::SequentialWriteRequired,
            max_open_zones: 4,
            max_active_zones: 6,
            max_append_bytes: 1 << 17,
        },
        profile_name: "test-small".into(),
        label: "bench 3".into(),
    }
}

const EXAMPLE_ZONE: ZoneId = ZoneId(5);
const EXAMPLE_ENTRY: Entry = Entry {
    rested: RestedZone {
        condition: ZoneCondition::Closed,
        write_pointer: 0x3000,
    },
    prepared_end: 0xc_0000,
};

fn crc32c(data: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, data) as u32
}

/// Rows of the document's table: (part, field) → (offset, bytes).
fn documented() -> BTreeMap<(String, String), (usize, usize)> {
    let mut rows = BTreeMap::new();
    for line in DOCUMENT.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let [_, part @ ("header" | "entry"), offset, bytes, field, ..] = cells[..] {
            let row = (offset.parse().unwrap(), bytes.parse().unwrap());
            assert!(
                rows.insert((part.into(), field.into()), row).is_none(),
                "{line}"
            );
        }
    }
    rows
}

#[test]
fn the_documents_table_is_what_the_code_has() {
    let coded: [(&str, &str, usize, usize); 27] = [
        ("header", "magic", header_at::MAGIC, format::MAGIC.len()),
        ("header", "version", header_at::VERSION, 4),
        ("header", "checksum", header_at::CHECKSUM, 4),
        ("header", "uuid", header_at::UUID, 16),
        ("header", "block_size", header_at::BLOCK_SIZE, 4),
        ("header", "zone_count", header_at::ZONE_COUNT, 4),
        ("header", "zone_size", header_at::ZONE_SIZE, 8),
        ("header", "zone_capacity", header_at::ZONE_CAPACITY, 8),
        (
            "header",
            "conventional_zones",
            header_at::CONVENTIONAL_ZONES,
            4,
        ),
        ("header", "sequential_kind", header_at::SEQUENTIAL_KIND, 1),
        ("header", "max_open_zones", header_at::MAX_OPEN_ZONES, 4),
        ("header", "max_active_zones", header_at::MAX_ACTIVE_ZONES, 4),
        ("header", "max_append_bytes", header_at::MAX_APPEND_BYTES, 4),
        ("header", "table_offset", header_at::TABLE_OFFSET, 8),
        ("header", "data_offset", header_at::DATA_OFFSET, 8),
        (
            "header",
            "profile_name",
            header_at::PROFILE_NAME,
            1 + format::PROFILE_NAME_BYTES,
        ),
        ("header", "label", header_at::LABEL, 1 + format::LABEL_BYTES),
        ("header", "reserved 1", header_at::SEQUENTIAL_KIND + 1, 3),
        ("header", "reserved 2", header_at::MAX_APPEND_BYTES + 4, 4),
        (
            "header",
            "reserved 3",
            header_at::RESERVED,
            format::HEADER_BYTES - header_at::RESERVED,
        ),
        ("entry", "zone", entry_at::ZONE, 4),
        ("entry", "kind", entry_at::KIND, 1),
        ("entry", "condition", entry_at::CONDITION, 1),
        ("entry", "reserved", entry_at::CONDITION + 1, 2),
        ("entry", "write_pointer", entry_at::WRITE_POINTER, 8),
        ("entry", "prepared_end", entry_at::PREPARED_END, 8),
        ("entry", "checksum", entry_at::CHECKSUM, 4),
    ];
    let mut documented = documented();
    for (part, field, offset, bytes) in coded {
        let row = documented.remove(&(part.into(), field.into()));
        assert_eq!(row, Some((offset, bytes)), "{part} {field}");
    }
    let rest = documented.remove(&("entry".into(), "reserved 2".into()));
    assert_eq!(
        rest,
        Some((entry_at::RESERVED, entry_at::CHECKSUM - entry_at::RESERVED))
    );
    assert_eq!(documented, BTreeMap::new(), "documented and not coded");
}

#[test]
fn the_documents_table_covers_every_byte_once() {
    for (part, size) in [
        ("header", format::HEADER_BYTES),
        ("entry", format::ENTRY_BYTES),
    ] {
        let mut fields: Vec<_> = documented()
            .into_iter()
            .filter(|((of, _), _)| of == part)
            .map(|(_, row)| row)
            .collect();
        fields.sort_unstable();
        let end = fields.iter().fold(0, |end, (offset, bytes)| {
            assert_eq!(*offset, end, "{part}");
            offset + bytes
        });
        assert_eq!(end, size, "{part}");
    }
}

/// The bytes of a hex dump in the document, which begins after the line `title`.
fn dump(title: &str) -> Vec<u8> {
    let (_, after) = DOCUMENT.split_once(title).unwrap();
    let lines = after
        .lines()
        .skip_while(|line| !line.starts_with("```"))
        .skip(1);
    let mut bytes = Vec::new();
    for line in lines.take_while(|line| !line.starts_with("```")) {
        let (offset, hex) = line.split_once("  ").unwrap();
        assert_eq!(usize::from_str_radix(offset, 16).unwrap(), bytes.len());
        let pairs = hex.split_whitespace();
        bytes.extend(pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()));
    }
    bytes
}

#[test]
fn the_worked_example_is_what_the_code_writes_and_reads() {
    let mut header = dump("**Header.**");
    header.resize(format::HEADER_BYTES, 0);
    assert_eq!(header, format::encode_header(&example()));
    let header: &[u8; format::HEADER_BYTES] = header[..].try_into().unwrap();
    assert_eq!(format::decode_header(header), Ok(example()));
    let entry = dump("**Entry.**");
    let kind = ZoneKind::SequentialWriteRequired;
    assert_eq!(
        entry,
        format::encode_entry(EXAMPLE_ZONE, kind, EXAMPLE_ENTRY)
    );
    let entry: &[u8; format::ENTRY_BYTES] = entry[..].try_into().unwrap();
    assert_eq!(
        format::decode_entry(EXAMPLE_ZONE, kind, entry),
        Ok(EXAMPLE_ENTRY)
    );
}

#[test]
fn the_layout_is_what_the_document_says() {
    assert_eq!(format::entry_offset(ZoneId(0)), 4096);
    assert_eq!(format::entry_offset(EXAMPLE_ZONE), 0x1140);
    assert_eq!(format::data_offset(1), 1 << 20);
    assert_eq!(format::data_offset(16_320), 1 << 20);
    assert_eq!(format::data_offset(16_321), 2 << 20);
    assert_eq!(format::file_bytes(&example().geometry), Some(13 << 20));
}

#[test]
fn no_changed_byte_of_a_header_goes_unnoticed() {
    let good = format::encode_header(&example());
    for at in 0..good.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut bad = good;
            bad[at] ^= change;
            let error = format::decode_header(&bad).unwrap_err();
            match at {
                0..8 => assert_eq!(error, FormatError::Magic),
                _ => assert!(
                    matches!(
                        error,
                        FormatError::Field {
                            what: "header checksum",
                            ..
                        }
                    ),
                    "{error:?}"
                ),
            }
        }
    }
}

#[test]
fn no_changed_byte_of_an_entry_goes_unnoticed() {
    let kind = ZoneKind::SequentialWriteRequired;
    let good = format::encode_entry(EXAMPLE_ZONE, kind, EXAMPLE_ENTRY);
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good;
            bad[at] ^= 1 << bit;
            format::decode_entry(EXAMPLE_ZONE, kind, &bad).unwrap_err();
        }
    }
    // An entry in the wrong place, or of another kind of zone.
    format::decode_entry(ZoneId(6), kind, &good).unwrap_err();
    format::decode_entry(EXAMPLE_ZONE, ZoneKind::Conventional, &good).unwrap_err();
}

/// Makes the checksum of changed bytes right again.
fn reseal_header(block: &mut [u8; format::HEADER_BYTES]) {
    block[header_at::CHECKSUM..][..4].fill(0);
    let checksum = crc32c(block);
    block[header_at::CHECKSUM..][..4].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn reserved_bytes_must_be_zero() {
    for at in [61, 63, 76, 79, 96 + 11, 288, 4095] {
        let mut block = format::encode_header(&example());
        block[at] = 1;
        reseal_header(&mut block);
        assert_eq!(
            format::decode_header(&block).unwrap_err(),
            FormatError::Field {
                what: "reserved byte",
                at,
                expected: 0,
                found: 1
            }
        );
    }
}

proptest! {
    #[test]
    fn every_header_that_can_be_written_is_read_back(
        version in format::FIRST_VERSION..=format::VERSION,
        uuid in any::<[u8; 16]>(),
        block_bits in 9..=16_u32,
        blocks in 1..=1_000_000_u64,
        capacity in 0.0..=1.0_f64,
        zone_count in 1..=format::MAX_ZONES,
        conventional in 0.0..=1.0_f64,
        preferred in any::<bool>(),
        limits in (0..100_u32, 0..100_u32),
        profile_name in "\\PC{0,15}",
        label in "\\PC{0,31}",
    ) {
        let block_size = 1 << block_bits;
        let header = Header {
            version,
            uuid: DriveUuid(uuid),
            geometry: Geometry {
                block_size,
                zone_size: blocks * u64::from(block_size),
                zone_capacity: ((blocks as f64 * capacity) as u64).max(1) * u64::from(block_size),
                zone_count,
                conventional_zones: (f64::from(zone_count) * conventional) as u32,
                conventional_parts: 1,
                sequential_kind: if preferred {
                    ZoneKind::SequentialWritePreferred
                } else {
                    ZoneKind::SequentialWriteRequired
                },
                max_open_zones: limits.0,
                max_active_zones: if limits.1 == 0 { 0 } else { limits.0 + limits.1 },
                max_append_bytes: 3 * block_size,
            },
            profile_name,
            label,
        };
        prop_assume!(header.geometry.validate().is_ok());
        prop_assume!(format::file_bytes(&header.geometry).is_some());
        prop_assert_eq!(format::decode_header(&format::encode_header(&header)), Ok(header));
    }

    /// Past the checksum, where damage no longer is what keeps nonsense out.
    #[test]
    fn what_is_read_of_any_sealed_header_is_sane_and_writes_the_same_bytes(
        changes in prop::collection::vec((12..300_usize, any::<u8>()), 1..6),
    ) {
        let mut block = format::encode_header(&example());
        for (at, value) in changes {
            block[at] = value;
        }
        reseal_header(&mut block);
        if let Ok(header) = format::decode_header(&block) {
            prop_assert_eq!(header.geometry.validate(), Ok(()));
            prop_assert!(format::file_bytes(&header.geometry).is_some());
            prop_assert_eq!(format::encode_header(&header), block);
        }
    }

    #[test]
    fn any_bytes_are_no_header_and_no_entry(bytes in prop::collection::vec(any::<u8>(), 4096)) {
        let mut block: [u8; format::HEADER_BYTES] = bytes[..].try_into().unwrap();
        prop_assert!(format::decode_header(&block).is_err());
        block[..8].copy_from_slice(&format::MAGIC);
        block[8..12].copy_from_slice(&format::VERSION.to_le_bytes());
        prop_assert!(format::decode_header(&block).is_err());
        reseal_header(&mut block);
        prop_assert!(format::decode_header(&block).is_err());
        let entry: [u8; format::ENTRY_BYTES] = bytes[..format::ENTRY_BYTES].try_into().unwrap();
        prop_assert!(format::decode_entry(ZoneId(0), ZoneKind::Conventional, &entry).is_err());
    }

    #[test]
    fn what_is_read_of_any_sealed_entry_writes_the_same_bytes(
        changes in prop::collection::vec((0..60_usize, any::<u8>()), 1..4),
    ) {
        let kind = ZoneKind::SequentialWriteRequired;
        let mut entry = format::encode_entry(EXAMPLE_ZONE, kind, EXAMPLE_ENTRY);
        for (at, value) in changes {
            entry[at] = value;
        }
        let checksum = crc32c(&entry[..60]);
        entry[60..].copy_from_slice(&checksum.to_le_bytes());
        if let Ok(content) = format::decode_entry(EXAMPLE_ZONE, kind, &entry) {
            prop_assert_eq!(format::encode_entry(EXAMPLE_ZONE, kind, content), entry);
        }
    }
}

/// Prints the dumps of the worked example, for whoever changes the format.
#[test]
#[ignore = "prints, checks nothing"]
fn print_the_worked_example() {
    let print = |bytes: &[u8]| {
        for (i, line) in bytes.chunks(16).enumerate() {
            let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            println!("{:04x}  {}", i * 16, hex.join(" "));
        }
    };
    print(&format::encode_header(&example())[..176]);
    let kind = ZoneKind::SequentialWriteRequired;
    print(&format::encode_entry(EXAMPLE_ZONE, kind, EXAMPLE_ENTRY));
}

#[test]
fn an_impossible_geometry_behind_a_right_checksum_is_damage_to_a_field() {
    type Change = fn(&mut Geometry);
    let wrong: [(usize, Change); 9] = [
        (header_at::BLOCK_SIZE, |g| g.block_size = 3000),
        (header_at::ZONE_SIZE, |g| g.zone_size += 1),
        (header_at::ZONE_SIZE, |g| g.zone_size = u64::MAX - 1),
        (header_at::ZONE_CAPACITY, |g| {
            g.zone_capacity = g.zone_size + 4096
        }),
        (header_at::ZONE_CAPACITY, |g| g.zone_capacity = 0),
        (header_at::CONVENTIONAL_ZONES, |g| g.conventional_zones = 13),
        (header_at::SEQUENTIAL_KIND, |g| {
            g.sequential_kind = ZoneKind::Conventional
        }),
        (header_at::MAX_ACTIVE_ZONES, |g| g.max_active_zones = 1),
        (header_at::MAX_APPEND_BYTES, |g| g.max_append_bytes = 1000),
    ];
    for (place, change) in wrong {
        let mut header = example();
        change(&mut header.geometry);
        let error = format::decode_header(&format::encode_header(&header)).unwrap_err();
        assert!(
            matches!(error, FormatError::Field { at, .. } if at == place),
            "{place}: {error:?}"
        );
    }
    // Nothing that could overflow while it is told.
    let mut block = format::encode_header(&example());
    block[header_at::ZONE_COUNT..][..4].fill(0);
    let mut crc = block;
    crc[header_at::CHECKSUM..][..4].fill(0);
    block[header_at::CHECKSUM..][..4].copy_from_slice(&crc32c(&crc).to_le_bytes());
    let error = format::decode_header(&block).unwrap_err();
    assert!(
        matches!(
            error,
            FormatError::Field {
                at: header_at::ZONE_COUNT,
                ..
            }
        ),
        "{error:?}"
    );
}
