//! Damage in a file: a whole read finds it by the file's checksum, and a block that cannot be read fails only the reads
//! of its own bytes.

use super::*;
use crate::worn_out::BadBlocks;
use device::changed::Changed;
use std::path::Path;

#[test]
fn damage_in_a_piece_that_is_read_whole_is_reported() {
    for cache_bytes in [0, 1 << 20] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("drive");
        let content = Numbers(5).bytes(10_000);
        let drive = FileDrive::create(&path, &geometry(), "test").unwrap();
        let fs = mounted(Arc::new(drive), cache_bytes);
        support::put(&fs, "/CURRENT", &content);
        damage(&path, &content[5000..5064]);
        let error = support::read(&fs, "/CURRENT").unwrap_err();
        assert!(matches!(error, bluefs::Error::Corrupt { .. }), "{error}");
        let reader = fs.open("/CURRENT").unwrap();
        let (mut one, mut other) = (vec![0; 10_000], vec![0; 10_000]);
        for read in reader.read_many(&mut [(0, &mut one), (0, &mut other)]) {
            assert!(
                matches!(read, Err(bluefs::Error::Corrupt { .. })),
                "{read:?}"
            );
        }
        let mut buffer = vec![0; 4000];
        match reader.read_at(0, &mut buffer) {
            Ok(read) => assert!(cache_bytes == 0 && buffer == content[..read]),
            // For the cache the piece is read whole.
            Err(error) => assert!(
                cache_bytes > 0 && matches!(error, bluefs::Error::Corrupt { .. }),
                "{error}"
            ),
        }
    }
}

/// Flips a bit of the first of these bytes in the drive's file.
fn damage(path: &Path, bytes: &[u8]) {
    let mut image = std::fs::read(path).unwrap();
    let at = image.windows(bytes.len()).position(|w| w == bytes).unwrap();
    image[at] ^= 1;
    std::fs::write(path, image).unwrap();
}

/// Also with a cache, which is filled with whole runs.
#[test]
fn a_block_that_cannot_be_read_fails_only_reads_of_its_bytes() {
    const BLOCK: usize = 4096;
    for cache_bytes in [0, 1 << 20] {
        let drive = MemoryDrive::new(geometry()).unwrap();
        let change = BadBlocks::default();
        let drive = Arc::new(Changed { drive, change });
        let fs = mounted(drive.clone(), cache_bytes);
        let content = Numbers(6).bytes(4 * BLOCK);
        support::put(&fs, "/1.sst", &content);
        let at = drive
            .geometry()
            .absolute(fs.extents("/1.sst").unwrap()[0].at);
        let bad = 2;
        drive
            .change
            .0
            .lock()
            .unwrap()
            .push(at.0 + (bad * BLOCK) as u64);
        for block in [3, 2, 0, 1, 3] {
            let mut buffer = vec![0; BLOCK];
            let reader = fs.open("/1.sst").unwrap();
            let read = reader.read_at((block * BLOCK) as u64, &mut buffer);
            assert_eq!(read.is_ok(), block != bad, "block {block}: {read:?}");
            assert!(block == bad || buffer == content[block * BLOCK..][..BLOCK]);
        }
    }
}

/// The end of a file may lie in a damaged piece that has nothing to do with the bytes before it.
#[test]
fn damage_in_another_piece_of_a_run_fails_no_read() {
    for cache_bytes in [0, 1 << 20] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("drive");
        let drive = FileDrive::create(&path, &geometry(), "test").unwrap();
        let fs = mounted(Arc::new(drive), cache_bytes);
        let content = Numbers(7).bytes(10_000);
        let mut writer = fs.create("/CURRENT").unwrap();
        for part in [&content[..5000], &content[5000..]] {
            writer.append(part).unwrap();
            writer.sync().unwrap();
        }
        drop(writer);
        assert_eq!(fs.extents("/CURRENT").unwrap().len(), 2);
        damage(&path, &content[9000..9064]);
        let reader = fs.open("/CURRENT").unwrap();
        let mut buffer = vec![0; 5000];
        assert_eq!(reader.read_at(0, &mut buffer).unwrap(), 5000);
        assert!(buffer == content[..5000]);
        let error = reader.read_at(5000, &mut buffer).unwrap_err();
        assert!(matches!(error, bluefs::Error::Corrupt { .. }), "{error}");
    }
}
