//! Journal frames are damaged, one at a time. A repair carries out the frames after it: only what the damaged frame
//! held is lost, and zones that may have changed their owner in it are left alone.

use crate::support::{assert_clean, format, geometry, mount, pool, put, read};
use bluefs::format::journal::{DecodedFrame, MAGIC, decode_frame, decode_header, encode_frame};
use bluefs::format::operation::{ExtentEntry, JournalOperation};
use bluefs::{BlueFs, Error, Loss, MountOptions, Role};
use device::{MemoryDrive, ZonedDevice};
use std::collections::BTreeMap;
use std::sync::Arc;
use zone::{ZoneAddress, ZoneId, ZoneKind};
use zone_alloc::Owner;

const BLOCK: u64 = 512;

fn drive(conventional: u32) -> Arc<MemoryDrive> {
    let device = Arc::new(MemoryDrive::new(geometry(60, conventional, 0)).unwrap());
    format(&*device, Role::Alone);
    device
}

/// Addresses of the frames of the newest epoch, by number.
fn frames(device: &MemoryDrive) -> BTreeMap<u64, ZoneAddress> {
    let g = device.geometry();
    let mut found: BTreeMap<u64, BTreeMap<u64, ZoneAddress>> = BTreeMap::new();
    for zone in g.zones() {
        let mut bytes = vec![0; g.capacity(zone) as usize];
        device.read(g.start(zone), &mut bytes).unwrap();
        for (index, block) in bytes.chunks(BLOCK as usize).enumerate() {
            if let Some(header) = decode_header(block).filter(|_| block.starts_with(&MAGIC)) {
                let at = ZoneAddress::new(zone, index as u64 * BLOCK);
                let of_epoch = found.entry(header.place.epoch).or_default();
                of_epoch.insert(header.place.sequence, at);
            }
        }
    }
    found.into_values().next_back().unwrap()
}

/// A copy of the drive with a byte changed after the header of a frame.
fn damaged(device: &MemoryDrive, at: ZoneAddress) -> Arc<MemoryDrive> {
    let copy = device.snapshot();
    let g = copy.geometry().clone();
    let is_conventional = g.kind(at.zone) == ZoneKind::Conventional;
    let end = match is_conventional {
        true => g.capacity(at.zone),
        false => copy.report_zone(at.zone).unwrap().write_pointer,
    };
    let mut zone = vec![0; end as usize];
    copy.read(g.start(at.zone), &mut zone).unwrap();
    zone[at.offset as usize + 41] ^= 4;
    if !is_conventional {
        copy.reset(at.zone).unwrap();
    }
    copy.write(g.start(at.zone), &zone).unwrap();
    Arc::new(copy)
}

/// The losses that a repair reports, and the file system after it.
fn repaired(device: &Arc<MemoryDrive>) -> (Vec<Loss>, BlueFs) {
    let options = |read_only| MountOptions {
        read_only,
        accept_damage: true,
        ..MountOptions::default()
    };
    let refused = mount(device.clone()).err();
    assert!(
        matches!(refused, Some(Error::JournalDamaged { .. })),
        "{refused:?}"
    );
    let fs = BlueFs::mount(device.clone(), pool(&**device), options(true)).unwrap();
    let lost = fs.losses().unwrap();
    drop(fs);
    let fs = BlueFs::mount(device.clone(), pool(&**device), options(false)).unwrap();
    fs.unmount().unwrap();
    drop(fs);
    let fs = mount(device.clone()).unwrap();
    assert_clean(&fs);
    (lost, fs)
}

fn all(fs: &BlueFs, folder: &str) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for name in fs.list(folder).unwrap() {
        let path = format!("{}/{name}", folder.trim_end_matches('/'));
        if fs.metadata(&path).unwrap().is_directory {
            found.extend(all(fs, &path));
        } else {
            found.insert(path.clone(), read(fs, &path).unwrap());
        }
    }
    found
}

#[test]
fn what_a_damaged_frame_did_not_hold_is_there() {
    for conventional in [0, 4] {
        let device = drive(conventional);
        let fs = mount(device.clone()).unwrap();
        fs.create_directory("/d").unwrap();
        for n in 0..12u8 {
            put(
                &fs,
                &format!("/d/{n:02}.sst"),
                &vec![n; 700 + usize::from(n)],
            );
        }
        let mut log = fs.create("/d/000001.log").unwrap();
        for n in 0..4u8 {
            log.append(&[n; 900]).unwrap();
            log.sync().unwrap();
            put(&fs, "/d/CURRENT.tmp", &[n; 20]);
            fs.rename("/d/CURRENT.tmp", "/d/CURRENT").unwrap();
            fs.sync_metadata().unwrap();
        }
        log.close().unwrap();
        let expected = all(&fs, "/");
        fs.unmount().unwrap();
        drop(fs);
        let (mut one_file, mut found) = (0, 0);
        for (number, at) in frames(&device).into_iter().skip(1) {
            let (lost, fs) = repaired(&damaged(&device, at));
            let there = all(&fs, "/");
            for (path, bytes) in &there {
                let is_named = lost.iter().any(|loss| loss.path == *path);
                match expected.get(path) {
                    // The damaged frame may be the rename that gave this file its name.
                    Some(right) if path == "/d/CURRENT" => assert_eq!(right.len(), bytes.len()),
                    Some(right) if is_named => assert!(right.starts_with(bytes), "{number} {path}"),
                    Some(right) => assert_eq!(right, bytes, "{number} {path} {lost:?}"),
                    None if path.starts_with("/lost+found/") => found += 1,
                    None => assert_eq!(path, "/d/CURRENT.tmp", "{number} {lost:?}"),
                }
            }
            let gone = expected.keys().filter(|path| !there.contains_key(*path));
            let gone: Vec<_> = gone.collect();
            assert!(gone.len() <= 1, "{number}: {gone:?} {lost:?}");
            one_file += gone.len();
            assert!(lost.iter().any(|loss| loss.path == "the file system"));
        }
        println!(
            "{conventional} conventional: {one_file} frames held a file, {found} were found again"
        );
        assert!(one_file >= 10, "{one_file}");
    }
}

/// The damaged frame removed a file whose zone holds another file by now: the removed file must not come back.
#[test]
fn a_file_whose_zone_has_been_used_again_does_not_come_back() {
    let device = Arc::new(MemoryDrive::new(geometry(20, 0, 0)).unwrap());
    format(&*device, Role::Alone);
    let fs = mount(device.clone()).unwrap();
    let epoch = fs.info().journal_epoch;
    put(&fs, "/kept.sst", &[9; 600]);
    let zone = device.geometry().zone_capacity as usize;
    put(&fs, "/old.sst", &vec![1; 2 * zone]);
    // The zone that the file fills completely.
    let place = fs.extents("/old.sst").unwrap()[1].at.zone;
    fs.delete("/old.sst").unwrap();
    fs.sync_metadata().unwrap();
    let names_it = |at: &ZoneAddress| {
        let mut block = [0; BLOCK as usize];
        device
            .read(device.geometry().absolute(*at), &mut block)
            .unwrap();
        block.windows(8).any(|window| window == b"/old.sst")
    };
    let held = frames(&device).into_values().rfind(names_it).unwrap();
    // Writes files until one of them has an extent in that zone.
    for n in 0..40 {
        let path = format!("/{n:02}.sst");
        put(&fs, &path, &vec![2; zone]);
        let extents = fs.extents(&path).unwrap();
        if extents.iter().any(|extent| extent.at.zone == place) {
            break;
        }
    }
    assert!(device.report_zone(place).unwrap().write_pointer > 0);
    assert_eq!(fs.info().journal_epoch, epoch);
    let expected = all(&fs, "/");
    fs.unmount().unwrap();
    drop(fs);
    let (lost, fs) = repaired(&damaged(&device, held));
    assert_eq!(all(&fs, "/"), expected, "{lost:?}");
    assert!(lost.iter().any(|loss| loss.path == "/old.sst"), "{lost:?}");
}

/// On a drive shared with a store: a zone that a damaged frame gave away holds the store's data by now.
#[test]
fn a_zone_that_was_given_away_is_left_alone() {
    let device = Arc::new(MemoryDrive::new(geometry(60, 0, 0)).unwrap());
    format(&*device, Role::Shared);
    let fs = mount(device.clone()).unwrap();
    let zone = device.geometry().zone_capacity as usize;
    for n in 0..8 {
        put(&fs, &format!("/{n}.sst"), &vec![n; zone]);
    }
    let held: Vec<ZoneId> = fs.zones().into_iter().map(|(zone, _)| zone).collect();
    for n in 0..8 {
        fs.delete(&format!("/{n}.sst")).unwrap();
    }
    let before = frames(&device).len() as u64;
    fs.sync_metadata().unwrap();
    for n in 0..6 {
        put(&fs, "/x", &[n; 10]);
        fs.sync_metadata().unwrap();
    }
    fs.unmount().unwrap();
    let pool = pool(&*device);
    drop(fs);
    let fs = BlueFs::mount(
        device.clone(),
        pool.clone(),
        MountOptions {
            read_only: true,
            ..MountOptions::default()
        },
    )
    .unwrap();
    let given: Vec<ZoneId> = held
        .into_iter()
        .filter(|zone| pool.owner(*zone) != Some(Owner::BlueFs))
        .collect();
    drop(fs);
    assert!(!given.is_empty());
    let g = device.geometry().clone();
    for zone in &given {
        if device.report_zone(*zone).unwrap().write_pointer == 0 {
            device.write(g.start(*zone), &[7; 512]).unwrap();
        }
    }
    for (number, at) in frames(&device)
        .into_iter()
        .filter(|(number, _)| *number >= before)
    {
        let device = damaged(&device, at);
        let (lost, _fs) = repaired(&device);
        for zone in &given {
            let mut block = [0; 512];
            device.read(g.start(*zone), &mut block).unwrap();
            assert_eq!(block, [7; 512], "frame {number}, zone {zone}: {lost:?}");
        }
    }
}

/// A drive with a file of 700 bytes, whose journal ends with a whole frame that gives the file an extent which no zone
/// has room for, and with `behind` with another frame, which says that this one is durable.
fn with_an_impossible_extent(behind: bool) -> Arc<MemoryDrive> {
    let device = drive(0);
    let g = device.geometry().clone();
    let fs = mount(device.clone()).unwrap();
    put(&fs, "/1.sst", &[1; 700]);
    let zone = fs.extents("/1.sst").unwrap()[0].at.zone;
    let inode = fs.open("/1.sst").unwrap().inode();
    drop(fs);
    let (_, at) = frames(&device).pop_last().unwrap();
    let mut block = vec![0; BLOCK as usize];
    device.read(g.absolute(at), &mut block).unwrap();
    let header = decode_header(&block).unwrap();
    let DecodedFrame::Whole(_, previous) = decode_frame(&block[..header.frame_length()]) else {
        panic!("the last frame is larger than a block");
    };
    let extent = ExtentEntry {
        file_offset: 700,
        at: ZoneAddress::new(zone, BLOCK),
        length: u64::MAX,
        checksum: 1,
    };
    let extend = JournalOperation::Extend {
        inode,
        modified_micros: 1,
        extents: vec![extent],
    };
    let next = JournalOperation::NextInode { inode: 9 };
    let mut place = header.place;
    let (mut at, mut previous) = (at, previous);
    for operation in [extend, next].into_iter().take(1 + usize::from(behind)) {
        place.sequence += 1;
        place.previous = previous;
        at.offset += BLOCK;
        let mut payload = Vec::new();
        operation.encode(&mut payload);
        let (frame, sum) = encode_frame(place, place.sequence, &payload, BLOCK as u32);
        device.write(g.absolute(at), &frame).unwrap();
        previous = sum;
    }
    device
}

/// Its checksums are right, so that only its extent tells that it cannot be true.
#[test]
fn a_frame_with_an_impossible_extent_is_damage_and_costs_the_file_nothing() {
    for behind in [true, false] {
        let device = with_an_impossible_extent(behind);
        let (lost, fs) = repaired(&device);
        assert_eq!(read(&fs, "/1.sst").unwrap(), [1; 700], "{behind}");
        let of_file = lost.iter().find(|loss| loss.path == "/1.sst");
        assert!(of_file.is_none(), "{lost:?}");
    }
}
