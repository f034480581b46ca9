//! How data is stored: compression, codecs and checksums; every mount can read all of it.

use crate::common;
use crate::common::{
    assert_clean, contents, create_collection, geometry, mkfs, options, pattern, put, read, written,
};
use device::{MemoryDrive, ZonedDevice};
use std::sync::Arc;
use store::{
    Attributes, ChecksumBlock, ChecksumKind, Codec, CompressionMode, DataOptions, Error, Store,
    Transaction, WriteHints,
};
use zone::ZoneId;

fn mounted(device: &Arc<dyn ZonedDevice>, data: DataOptions) -> Store {
    let mut options = options();
    options.data = data;
    Store::mount(device.clone(), options).unwrap()
}

fn fresh(data: DataOptions) -> (Arc<dyn ZonedDevice>, Store) {
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(96)).unwrap());
    mkfs(&device);
    let store = mounted(&device, data);
    create_collection(&store);
    (device, store)
}

fn compressing(mode: CompressionMode, codec: Codec) -> DataOptions {
    let mut data = DataOptions::default();
    data.compression.mode = mode;
    data.compression.codec = codec;
    data
}

/// Text that each codec compresses to a quarter or less.
fn text(lines: u32) -> Vec<u8> {
    let line =
        |n| format!("{n:08} the drive writes zone by zone, in order, and never in between\n");
    (0..lines).flat_map(|n| line(n).into_bytes()).collect()
}

fn live(store: &Store) -> u64 {
    store.zones().iter().map(|used| used.live_bytes).sum()
}

#[test]
fn compressed_objects_take_less_and_read_the_same_at_every_place() {
    for codec in [Codec::Zstd, Codec::Lz4] {
        let (device, store) = fresh(compressing(CompressionMode::Force, codec));
        let bytes = text(50_000);
        put(&store, "text", &bytes).unwrap();
        assert!(
            live(&store) * 2 < bytes.len() as u64,
            "{codec:?}: {}",
            live(&store)
        );
        let noise = pattern(1, 1 << 20);
        let before = live(&store);
        put(&store, "noise", &noise).unwrap();
        assert_eq!(live(&store) - before, 1 << 20);
        store.unmount().unwrap();
        // Reading needs no options.
        let store = mounted(&device, DataOptions::default());
        assert!(read(&store, "text").unwrap() == bytes);
        let reader = store.open("c", "text").unwrap();
        let mut random = fastrand::Rng::with_seed(common::seed());
        for _ in 0..200 {
            let from = random.usize(..bytes.len());
            let mut part = vec![0; random.usize(..300_000)];
            let got = reader.read_at(from as u64, &mut part).unwrap();
            assert_eq!(got, part.len().min(bytes.len() - from));
            assert!(part[..got] == bytes[from..from + got]);
        }
        drop(reader);
        store.seal_open_zones().unwrap();
        let mut tx = Transaction::new();
        tx.clone_object(("c", "text"), ("c", "clone"));
        tx.remove("c", "noise");
        store.commit(tx).unwrap();
        let patch = written(&store, b"0123456789").unwrap();
        let mut tx = Transaction::new();
        tx.write("c", "clone", 1_000_000, patch);
        tx.punch("c", "text", 100, 1_000_000);
        store.commit(tx).unwrap();
        while store.clean_one().unwrap() {}
        let (mut clone, mut punched) = (bytes.clone(), bytes);
        clone[1_000_000..1_000_010].copy_from_slice(b"0123456789");
        punched[100..1_000_100].fill(0);
        let found = contents(&store);
        assert!(found["clone"] == clone && found["text"] == punched);
        assert_clean(&store);
    }
}

#[test]
fn the_mode_and_the_writer_say_what_is_compressed() {
    use CompressionMode::{Aggressive, Force, None, Passive};
    let bytes = text(10_000);
    let hints = [Option::None, Some(false), Some(true)];
    let expected = [
        (None, [false, false, false]),
        (Passive, [false, false, true]),
        (Aggressive, [true, false, true]),
        (Force, [true, true, true]),
    ];
    for (mode, compressed) in expected {
        let (_, store) = fresh(compressing(mode, Codec::Zstd));
        for (compressible, compressed) in hints.into_iter().zip(compressed) {
            let hints = WriteHints {
                compressible,
                ..WriteHints::default()
            };
            let before = live(&store);
            let mut writer = store.writer_with(Some(bytes.len() as u64), hints).unwrap();
            writer.write(&bytes).unwrap();
            let mut tx = Transaction::new();
            let name = format!("{compressible:?}");
            tx.put("c", &name, writer.finish().unwrap(), Attributes::new());
            store.commit(tx).unwrap();
            let taken = live(&store) - before;
            assert_eq!(
                taken < bytes.len() as u64 / 2,
                compressed,
                "{mode:?} {compressible:?}"
            );
            assert!(read(&store, &name).unwrap() == bytes);
        }
    }
}

#[test]
fn a_drive_takes_more_than_fits_if_it_can_be_compressed() {
    let (_, store) = fresh(compressing(CompressionMode::Aggressive, Codec::Lz4));
    let bytes = text(100_000);
    let count = 2 * store.statfs().available_bytes / bytes.len() as u64;
    assert!(count > 10);
    for n in 0..count {
        put(&store, &format!("text {n}"), &bytes).unwrap();
    }
    // An upload larger than all free space is not refused at once.
    let mut writer = store.writer(Some(1 << 40)).unwrap();
    writer.write(&bytes).unwrap();
    drop(writer);
    assert_clean(&store);
}

#[test]
fn a_compressed_upload_under_way_is_moved() {
    let (_, store) = fresh(compressing(CompressionMode::Force, Codec::Zstd));
    let slow = text(120_000);
    let mut writer = store.writer(None).unwrap();
    for (n, part) in slow.chunks(300_000).enumerate() {
        writer.write(part).unwrap();
        put(&store, "noise", &pattern(n as u64, 500_000)).unwrap();
        if n % 4 == 3 {
            store.seal_open_zones().unwrap();
            while store.clean_one().unwrap() {}
        }
    }
    let moved = store.clean_status();
    assert!(moved.zones_cleaned > 5, "{moved:?}");
    assert!(store.health().unwrap().zones.is_empty());
    let mut tx = Transaction::new();
    tx.put("c", "slow", writer.finish().unwrap(), Attributes::new());
    store.commit(tx).unwrap();
    assert!(read(&store, "slow").unwrap() == slow);
    assert_clean(&store);
}

#[test]
fn damage_is_found_by_every_kind_of_checksum_and_by_none_where_there_is_none() {
    let kinds = [
        (ChecksumKind::Crc32c, true),
        (ChecksumKind::Xxh3, true),
        (ChecksumKind::None, false),
    ];
    for ((kind, notices), block) in kinds.into_iter().zip(ChecksumBlock::all().step_by(2)) {
        let (device, store) = fresh(DataOptions {
            checksum: kind,
            checksum_block: block,
            ..DataOptions::default()
        });
        let bytes = pattern(3, 400_000);
        put(&store, "o", &bytes).unwrap();
        assert_clean(&store);
        let zone = store.zones()[0].zone;
        store.unmount().unwrap();
        flip(&*device, zone, 200_000);
        let store = mounted(&device, DataOptions::default());
        match read(&store, "o") {
            Err(Error::ChecksumMismatch { offset, .. }) if notices => {
                assert_eq!(
                    offset,
                    200_000 / u64::from(block.bytes()) * u64::from(block.bytes())
                );
            }
            Ok(found) if !notices => assert!(found != bytes),
            other => panic!("{kind:?}: {other:?}"),
        }
    }
}

/// Damage without a checksum is an error or gives bytes of the same length; it crashes nothing.
#[test]
fn damaged_compressed_bytes_without_a_checksum_are_an_error_or_other_bytes_of_the_same_length() {
    for codec in [Codec::Zstd, Codec::Lz4] {
        let mut data = compressing(CompressionMode::Force, codec);
        data.checksum = ChecksumKind::None;
        let (device, store) = fresh(data);
        let bytes = text(8_000);
        put(&store, "o", &bytes).unwrap();
        let zone = store.zones()[0].zone;
        store.unmount().unwrap();
        let mut refused = 0;
        for place in (0..2_000).step_by(67) {
            flip(&*device, zone, place);
            let store = mounted(&device, DataOptions::default());
            match read(&store, "o") {
                Ok(found) => assert_eq!(found.len(), bytes.len()),
                Err(_) => refused += 1,
            }
            store.unmount().unwrap();
            flip(&*device, zone, place);
        }
        assert!(refused > 0, "{codec:?}");
    }
}

/// Flips a bit of a zone that is not full by writing it again.
fn flip(device: &dyn ZonedDevice, zone: ZoneId, byte: usize) {
    let start = device.geometry().start(zone);
    let mut bytes = vec![0; device.report_zone(zone).unwrap().write_pointer as usize];
    device.read(start, &mut bytes).unwrap();
    bytes[byte] ^= 4;
    device.reset(zone).unwrap();
    device.write(start, &bytes).unwrap();
}
