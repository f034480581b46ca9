//! The data cache: bytes read before come from memory, and are right whatever became of their place.

use crate::common::{create_collection, geometry, mkfs, options, pattern, put, read, taken_in};
use bytes::Bytes;
use device::stats::Stats;
use device::{MemoryDrive, ZonedDevice};
use std::sync::Arc;
use store::{ChecksumKind, Codec, CompressionMode, MountOptions, Store, Taken, Transaction};

type Drive = Arc<Stats<MemoryDrive>>;

const BUDGET: u64 = 4 << 20;

fn mounted(options: MountOptions) -> (Drive, Store) {
    let drive = Arc::new(Stats::new(MemoryDrive::new(geometry(96)).unwrap()));
    let device: Arc<dyn ZonedDevice> = drive.clone();
    mkfs(&device);
    let store = Store::mount(device, options).unwrap();
    create_collection(&store);
    (drive, store)
}

fn cached() -> MountOptions {
    let data_cache_bytes = BUDGET;
    MountOptions {
        data_cache_bytes,
        ..options()
    }
}

/// Bytes that `reads` read from the drive.
fn from_drive(drive: &Drive, reads: impl FnOnce()) -> u64 {
    let before = drive.snapshot();
    reads();
    drive.snapshot().since(&before).read.bytes
}

#[test]
fn what_was_read_is_read_from_memory_at_any_place_and_length() {
    let mut compressing = cached();
    compressing.data.compression.mode = CompressionMode::Force;
    compressing.data.compression.codec = Codec::Lz4;
    for options in [cached(), compressing] {
        let (drive, store) = mounted(options);
        let words = |n: u32| format!("{n} times a zone is written in order, ").into_bytes();
        let bytes: Vec<u8> = (0..12_000).flat_map(words).collect();
        put(&store, "o", &bytes).unwrap();
        let reader = store.open("c", "o").unwrap();
        let read_at = |at: usize, length: usize| {
            let mut target = vec![0; length];
            let read = reader.read_at(at as u64, &mut target).unwrap();
            assert!(target[..read] == bytes[at..(at + length).min(bytes.len())]);
        };
        // A range in the middle, then beyond it on both sides.
        assert!(from_drive(&drive, || read_at(100_000, 50_000)) > 0);
        assert_eq!(from_drive(&drive, || read_at(140_000, 20)), 0);
        assert!(from_drive(&drive, || read_at(3, 300_000)) > 0);
        let all = || read_at(0, bytes.len());
        from_drive(&drive, all);
        assert_eq!(from_drive(&drive, all), 0);
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..200 {
            let at = random.usize(..bytes.len());
            let length = random.usize(1..200_000);
            assert_eq!(from_drive(&drive, || read_at(at, length)), 0);
        }
        let counted = store.caches().unwrap().data;
        assert!(
            counted.hits > 200 && counted.hit_ratio() > Some(0.9),
            "{counted:?}"
        );
        assert!(counted.held_bytes <= BUDGET && counted.budget_bytes == BUDGET);
    }
}

#[test]
fn what_is_cached_is_taken_without_a_copy_as_far_as_it_goes() {
    let (drive, store) = mounted(cached());
    let bytes = pattern(1, 1_500_000);
    put(&store, "o", &bytes).unwrap();
    let reader = store.open("c", "o").unwrap();
    let mut buffer = vec![0; 1 << 20];
    let mut take = |at: usize, most: usize| match reader.take(at as u64, &mut buffer[..most]) {
        Ok(Taken::Shared(parts)) => Some(parts),
        Ok(Taken::Read(n)) => {
            assert!(buffer[..n] == bytes[at..at + n]);
            None
        }
        Err(error) => panic!("{error}"),
    };
    // Each read fetches and caches whole checksum blocks around the range.
    assert!(take(200_000, 100_000).is_none());
    assert!(take(100_000, 150_000).is_none());
    let read = from_drive(&drive, || {
        let parts = take(200_000, 1 << 20).unwrap();
        let same = take(200_000, 1 << 20).unwrap();
        let places = |parts: &[Bytes]| parts.iter().map(|part| part.as_ptr()).collect::<Vec<_>>();
        assert_eq!(places(&parts), places(&same));
        let taken = parts.concat();
        assert!((100_000..170_000).contains(&taken.len()));
        assert!(bytes[200_000..].starts_with(&taken));
        assert_eq!(take(210_000, 7).unwrap().concat(), bytes[210_000..210_007]);
    });
    assert_eq!(read, 0);
    let before = store.caches().unwrap().data;
    assert!(take(1_000_000, 400_000).is_none());
    // Each of the 7 checksum blocks is one miss, however often it is looked up before the read.
    assert_eq!(store.caches().unwrap().data.misses, before.misses + 7);
    // Shared bytes stay valid while the object is replaced and its zones are reset.
    let parts = take(200_000, 50_000).unwrap();
    for round in 2..100 {
        put(&store, "o", &pattern(round, 1_500_000)).unwrap();
        assert!(taken_in(&store, "c", "o").unwrap() == pattern(round, 1_500_000));
    }
    assert!(parts.concat() == bytes[200_000..][..parts.concat().len()]);
}

#[test]
fn what_is_no_bytes_of_a_blob_is_read() {
    let mut options = cached();
    options.data.compression.mode = CompressionMode::Force;
    let (_, store) = mounted(options);
    let words = |n: u32| format!("{n} times a zone is written in order, ").into_bytes();
    let compressible: Vec<u8> = (0..6_000).flat_map(words).collect();
    put(&store, "compressed", &compressible).unwrap();
    put(&store, "inline", b"small").unwrap();
    put(&store, "empty", b"").unwrap();
    put(&store, "hole", &pattern(1, 100_000)).unwrap();
    let mut transaction = Transaction::new();
    transaction.punch("c", "hole", 0, 300_000);
    store.commit(transaction).unwrap();
    for _ in 0..2 {
        let taken = |name| taken_in(&store, "c", name).unwrap();
        assert!(taken("compressed") == compressible);
        assert_eq!(
            (taken("inline"), taken("empty")),
            (b"small".to_vec(), Vec::new())
        );
        assert!(taken("hole") == vec![0; 300_000]);
    }
}

#[test]
fn a_hot_object_stays_when_others_are_read_once() {
    let (drive, store) = mounted(cached());
    put(&store, "hot", &pattern(1, 1_000_000)).unwrap();
    let hot = || from_drive(&drive, || drop(read(&store, "hot").unwrap()));
    assert!(hot() > 0 && hot() == 0);
    for number in 0..40 {
        let name = format!("cold{number}");
        put(&store, &name, &pattern(number, 1_000_000)).unwrap();
        read(&store, &name).unwrap();
    }
    assert_eq!(hot(), 0);
    assert!(store.caches().unwrap().data.left_bytes() > 8 * BUDGET);
}

/// Without checksums, which would be part of the cache key.
#[test]
fn what_is_kept_of_a_zone_is_not_found_after_its_reset() {
    let mut options = cached();
    options.data.checksum = ChecksumKind::None;
    let (drive, store) = mounted(options);
    // Enough rounds that new data is written where other data was before.
    for round in 0..200 {
        let bytes = pattern(round, 300_000);
        let name = format!("o{}", round % 3);
        put(&store, &name, &bytes).unwrap();
        assert!(read(&store, &name).unwrap() == bytes, "round {round}");
        assert!(
            taken_in(&store, "c", &name).unwrap() == bytes,
            "round {round}"
        );
        store.seal_open_zones().unwrap();
        while store.clean_one().unwrap() {}
    }
    assert!(drive.snapshot().reset.operations > 100);
}

#[test]
fn an_overwrite_a_clone_and_a_removal_are_seen_at_once() {
    let (_, store) = mounted(cached());
    let mut bytes = pattern(1, 500_000);
    put(&store, "o", &bytes).unwrap();
    assert!(read(&store, "o").unwrap() == bytes);
    let mut transaction = Transaction::new();
    transaction.clone_object(("c", "o"), ("c", "clone"));
    store.commit(transaction).unwrap();
    let mut writer = store.writer(None).unwrap();
    writer.write(&pattern(2, 30_000)).unwrap();
    let mut transaction = Transaction::new();
    transaction.write("c", "o", 100_000, writer.finish().unwrap());
    store.commit(transaction).unwrap();
    assert!(read(&store, "clone").unwrap() == bytes);
    bytes[100_000..130_000].copy_from_slice(&pattern(2, 30_000));
    assert!(read(&store, "o").unwrap() == bytes);
    let mut transaction = Transaction::new();
    transaction.remove("c", "o");
    store.commit(transaction).unwrap();
    assert!(read(&store, "o").is_err());
}
