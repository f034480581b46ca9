use super::*;
use crate::test_drive::geometry;
use zone::ZoneId;

fn at(offset: u64) -> ZoneAddress {
    ZoneAddress::new(ZoneId(3), offset)
}

fn of_blocks(bytes: &[u8]) -> Vec<u32> {
    checksum::of_blocks(ChecksumKind::Crc32c, ChecksumBlock::DEFAULT, bytes)
}

#[test]
fn neighbours_grow_together_up_to_the_largest_blob() {
    let bytes = vec![7; ObjectWriter::PIECE];
    let mut runs = Vec::new();
    for i in 0..5 {
        enter(
            &mut runs,
            at(i * ObjectWriter::PIECE as u64),
            &Stored::part(&bytes),
            &bytes,
            4096,
        );
    }
    let sizes: Vec<_> = runs.iter().map(|run| run.piece.length).collect();
    assert_eq!(sizes, [4 << 20, 1 << 20]);
    assert_eq!((runs[0].piece.checksums.len(), runs[0].raw), (64, 4 << 20));
}

#[test]
fn a_short_block_another_checksum_and_a_codec_end_a_run() {
    let bytes = [1; 128 << 10];
    let other = DataOptions {
        checksum: ChecksumKind::Xxh3,
        ..DataOptions::default()
    };
    let other = Shape::new(&other, WriteHints::default());
    let packed = Stored {
        codec: Codec::Lz4,
        ..Stored::part(&bytes)
    };
    let (plain, xxh3) = (Stored::part(&bytes), other.plain(&bytes));
    let cases = [
        (&plain, 4000),
        (&plain, 64 << 10),
        (&xxh3, 64 << 10),
        (&packed, 64 << 10),
        (&plain, 9),
    ];
    let (mut runs, mut offset) = (Vec::new(), 0);
    for (stored, length) in cases {
        enter(&mut runs, at(offset), stored, &bytes[..length], 4096);
        offset += (length as u64).next_multiple_of(4096);
    }
    assert_eq!(runs.len(), cases.len());
    assert_eq!(runs[0].piece.checksums, of_blocks(&bytes[..4000]));
}

#[test]
fn what_cannot_be_compressed_stays_in_one_run() {
    let mut noise = vec![0; 3 * compression::UNIT];
    fastrand::Rng::with_seed(1).fill(&mut noise);
    let mut bytes = noise.clone();
    bytes[compression::UNIT..2 * compression::UNIT].fill(0);
    let options = DataOptions {
        compression: Compression {
            mode: crate::CompressionMode::Force,
            ..Compression::default()
        },
        ..DataOptions::default()
    };
    let shape = Shape::new(&options, WriteHints::default());
    let geometry = geometry(1, 0);
    let sizes = |bytes: &[u8]| -> Vec<(Codec, u32)> {
        let stored = shape.stored(bytes, &geometry);
        stored
            .iter()
            .map(|stored| (stored.codec, stored.raw))
            .collect()
    };
    let unit = compression::UNIT as u32;
    assert_eq!(sizes(&noise), [(Codec::None, 3 * unit)]);
    let mixed = [
        (Codec::None, unit),
        (Codec::Zstd, unit),
        (Codec::None, unit),
    ];
    assert_eq!(sizes(&bytes), mixed);
    // What is compressed fits an empty zone.
    let small = Geometry {
        zone_capacity: 48 << 10,
        ..geometry
    };
    let stored = shape.stored(&bytes, &small);
    assert!(
        stored
            .iter()
            .all(|s| s.codec == Codec::None || s.raw <= 48 << 10)
    );
}
