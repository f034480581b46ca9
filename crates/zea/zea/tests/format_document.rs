//! Compares `docs/format/zea.md` with the code: offsets, sizes, and the examples. A decoder written from that page
//! alone reads what an instance wrote.

use crate::support::{Model, bytes, format, geometry, put};
use device::{MemoryDrive, ZonedDevice};
use std::sync::Arc;
use zea::Sequence;
use zea::format::label::{self, Label};
use zea::format::metadata::{self, Metadata};
use zea::format::{FORMAT_VERSION, data_checksum};
use zone::{ByteOffset, ZoneId, ZoneKind};

const DOCUMENT: &str = include_str!("../../../../docs/format/zea.md");

/// Offset, size and name of each field in the table after `heading`; asserts that the fields cover `total` bytes
/// without gaps.
fn fields(heading: &str, total: usize) -> Vec<(usize, usize, String)> {
    let from = DOCUMENT.find(heading).unwrap();
    let lines = DOCUMENT[from..].lines().skip(1);
    let table = lines
        .skip_while(|l| !l.starts_with('|'))
        .take_while(|l| l.starts_with('|'));
    let mut next = 0;
    let mut all = Vec::new();
    for line in table.skip(2) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let (offset, size) = (
            cells[0].parse().unwrap(),
            cells[1].parse::<usize>().unwrap(),
        );
        assert_eq!(offset, next, "{heading}: {line}");
        next = offset + size;
        all.push((offset, size, cells[2].to_owned()));
    }
    assert_eq!(next, total, "{heading}");
    all
}

fn field(block: &[u8], fields: &[(usize, usize, String)], name: &str) -> u64 {
    let (offset, size, _) = fields.iter().find(|f| f.2.starts_with(name)).unwrap();
    let bytes = &block[*offset..offset + size];
    bytes
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// The bytes of the hex example after `words`.
fn example(words: &str) -> Vec<u8> {
    let from = DOCUMENT.find(words).unwrap();
    let hex = DOCUMENT[from..].split("```").nth(1).unwrap();
    let digits: Vec<char> = hex.chars().filter(|c| !c.is_whitespace()).collect();
    let pairs = digits.chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap())
        .collect()
}

fn crc32c(block: &[u8], at: usize) -> u64 {
    let mut block = block.to_vec();
    block[at..at + 4].fill(0);
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &block)
}

#[test]
fn the_tables_are_the_code() {
    assert!(DOCUMENT.starts_with(&format!("# The format of ZEA, version {FORMAT_VERSION}")));
    let heading = format!("## Label ({} bytes", label::ENCODED);
    let table = fields(&heading, label::ENCODED);
    let block = Label {
        run_id: [9; 16],
        zone: 3,
        back_pointers: 4,
        block_size: 512,
        zone_capacity: 6,
    }
    .encode();
    assert_eq!((block.len(), &block[..8]), (512, &label::MAGIC[..]));
    assert_eq!(
        field(&block, &table, "format version"),
        u64::from(FORMAT_VERSION)
    );
    assert_eq!(field(&block, &table, "checksum"), crc32c(&block, 12));
    assert_eq!(field(&block, &table, "zone number"), 3);
    assert_eq!(field(&block, &table, "back pointers"), 4);
    assert_eq!(field(&block, &table, "block size"), 512);
    assert_eq!(field(&block, &table, "zone capacity"), 6);
    let most = format!(
        "(block size − {}) ÷ {}",
        metadata::HEADER,
        metadata::POINTER
    );
    assert!(DOCUMENT.contains(&most));
}

#[test]
fn a_decoder_written_from_the_page_reads_an_instance() {
    let table = fields("## Metadata of an extent (80 bytes", metadata::HEADER);
    let g = geometry(ZoneKind::SequentialWriteRequired);
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(g.clone()).unwrap());
    let instance = format(&device, 2, 3, &Sequence::default(), 1).unwrap();
    let mut model = Model::default();
    for n in 0..20 {
        put(&instance, &mut model, n * 7, bytes(n, 1 + n as usize * 61));
    }
    let mut zone = vec![0; instance.written() as usize];
    device.read(g.start(ZoneId(2)), &mut zone).unwrap();
    let blocks: Vec<&[u8]> = zone.chunks(512).collect();
    assert_eq!(blocks[0], blocks[1]);
    let mut ends = vec![1u64];
    for (at, (placed, data)) in model.extents.iter().enumerate() {
        let start = ends.last().unwrap() + 1;
        let own = start + (data.len() as u64).div_ceil(512);
        let block = blocks[own as usize];
        let told = |name| field(block, &table, name);
        assert_eq!(&block[..8], metadata::MARKER);
        assert_eq!(told("checksum: crc32c"), crc32c(block, 8));
        assert_eq!(block[16..32], blocks[0][16..32]);
        assert_eq!(told("logical address"), placed.address.0);
        assert_eq!(told("bytes of data"), data.len() as u64);
        assert_eq!(told("checksum of the data"), data_checksum(data));
        assert_eq!(
            (told("order"), told("number of the")),
            (at as u64, at as u64)
        );
        assert_eq!((told("first block"), told("this block")), (start, own));
        let count = told("number of back pointers") as usize;
        assert_eq!(count, at.min(3));
        let back = block[80..].chunks(4).take(count);
        let back: Vec<u64> = back
            .map(|b| u64::from(u32::from_le_bytes(b.try_into().unwrap())))
            .collect();
        let nearest: Vec<u64> = ends[1..].iter().rev().take(3).copied().collect();
        assert_eq!(back, nearest);
        assert!(block[80 + count * 4..].iter().all(|byte| *byte == 0));
        assert_eq!(placed.lba, ByteOffset(g.start(ZoneId(2)).0 + start * 512));
        assert_eq!(&zone[start as usize * 512..][..data.len()], data);
        ends.push(own);
    }
}

#[test]
fn the_examples_are_what_is_written() {
    let label = Label {
        run_id: [0x11; 16],
        zone: 7,
        back_pointers: 4,
        block_size: 512,
        zone_capacity: 1 << 20,
    };
    let written = label.encode();
    let shown = example("The label of zone 7");
    assert_eq!(hex(&written[..shown.len()]), hex(&shown));
    assert_eq!(Label::decode(&written), label::Decoded::Valid(label));
    let extent = Metadata {
        run_id: [0x11; 16],
        address: 99,
        length: 600,
        checksum: data_checksum(&[0xaa; 600]),
        order: 40,
        number: 2,
        start: 8,
        block: 10,
        back: vec![7, 4],
    };
    let written = extent.encode(512);
    let shown = example("The metadata of 600 bytes");
    assert_eq!(hex(&written[..shown.len()]), hex(&shown));
    let decoded = Metadata::decode(&written, &[0x11; 16], 10);
    assert_eq!(decoded, metadata::Decoded::Valid(extent));
    let elsewhere = Metadata::decode(&written, &[0x11; 16], 11);
    assert_eq!(elsewhere, metadata::Decoded::Nothing);
    // A later version is refused as such.
    let mut later = label.encode();
    later[8] = 2;
    let sum = crc32c(&later, 12) as u32;
    later[12..16].copy_from_slice(&sum.to_le_bytes());
    assert_eq!(Label::decode(&later), label::Decoded::OtherVersion(2));
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
