//! Flipped bits, destroyed blocks, and blocks copied over others: `get` returns the right bytes or an error, and
//! iterators return only extents that were put.

use crate::support;
use crate::support::unreadable::Unreadable;
use crate::support::{Model, bytes, format, geometry, number, put};
use device::changed::Changed;
use device::{MemoryDrive, ZonedDevice};
use std::sync::Arc;
use zea::{Error, Instance, Sequence};
use zone::{ZoneAddress, ZoneCondition, ZoneId, ZoneKind};

const ZONE: ZoneId = ZoneId(1);

/// A drive with extents of many lengths in one zone, and the model of them.
fn filled(back_pointers: u32) -> (Arc<MemoryDrive>, Model) {
    let g = geometry(ZoneKind::SequentialWriteRequired);
    let drive = Arc::new(MemoryDrive::new(g).unwrap());
    let device: Arc<dyn ZonedDevice> = drive.clone();
    let instance = format(&device, ZONE.0, back_pointers, &Sequence::default(), 5).unwrap();
    let mut model = Model::default();
    for n in 0..18 {
        put(
            &instance,
            &mut model,
            n,
            bytes(n, 1 + (n as usize * 397) % 2600),
        );
    }
    (drive, model)
}

/// Number of extents that the forward iterator, the backward iterator and `get` miss; `None` if the zone cannot be
/// opened. Panics on anything that was never put.
fn lost(image: MemoryDrive, model: &Model, told: &str) -> Option<[usize; 3]> {
    let device: Arc<dyn ZonedDevice> = Arc::new(image);
    let instance = match Instance::open(device, ZONE, Sequence::default()) {
        Ok(instance) => instance,
        Err(Error::Corrupt { .. } | Error::NotFormatted { .. } | Error::GeometryChanged { .. }) => {
            return None;
        }
        Err(Error::UnsupportedVersion { .. }) => return None,
        Err(error) => panic!("{told}: {error}"),
    };
    let placed = model.placed();
    let forward: Vec<_> = instance.forward().map(Result::unwrap).collect();
    let backward: Vec<_> = instance.backward().filter_map(Result::ok).collect();
    let mut got = 0;
    for (extent, data) in &model.extents {
        match instance.get(extent.lba, extent.length) {
            Ok(bytes) => {
                assert!(bytes == *data, "{told}: wrong bytes");
                got += 1;
            }
            Err(Error::Corrupt { .. } | Error::NotAnExtent { .. }) => {}
            Err(error) => panic!("{told}: {error}"),
        }
    }
    for found in forward.iter().chain(&backward) {
        assert!(placed.contains(found), "{told}: {found:?} was never put");
    }
    let checked = zea::check(&instance, true).unwrap();
    // Without an error only the padding after data can be damaged, for it is never read.
    let all = placed.len();
    assert!(
        got == all || !checked.is_clean() || !checked.gaps.is_empty(),
        "{told}: unseen"
    );
    Some([forward.len(), backward.len(), got].map(|found| all - found))
}

#[test]
fn every_block_with_a_flipped_bit() {
    for back_pointers in [1, 4] {
        let (drive, model) = filled(back_pointers);
        let end = drive.report_zone(ZONE).unwrap().write_pointer;
        for offset in (0..end).step_by(512) {
            for bit in 0..number("ZONESTORE_ZEA_BITS", 8) {
                let mut random = fastrand::Rng::with_seed(offset << 8 | bit);
                let (byte, mask) = (random.usize(..512), 1 << random.u32(..8));
                let image = drive.snapshot();
                image.decay(ZoneAddress::new(ZONE, offset), 512, |block| {
                    block[byte] ^= mask
                });
                let told = format!("n {back_pointers}, byte {} of {offset}", byte);
                // A damaged block costs at most one extent, and never the label, of which there are two.
                let lost = lost(image, &model, &told).unwrap_or_else(|| panic!("{told}"));
                assert!(lost.iter().all(|lost| *lost <= 1), "{told}: {lost:?}");
            }
        }
    }
}

#[test]
fn many_blocks_destroyed() {
    for seed in 0..number("ZONESTORE_ZEA_DAMAGES", 200) {
        let mut random = fastrand::Rng::with_seed(seed);
        let (drive, model) = filled(random.u32(1..6));
        let end = drive.report_zone(ZONE).unwrap().write_pointer / 512;
        for _ in 0..random.u32(1..12) {
            let at = ZoneAddress::new(ZONE, random.u64(..end) * 512);
            drive.decay(at, 512, |block| match random.u32(..3) {
                0 => block.fill(0),
                1 => random.fill(block),
                _ => block[random.usize(..512)] ^= 1 << random.u32(..8),
            });
        }
        lost(drive.snapshot(), &model, &format!("seed {seed}"));
    }
}

/// Imitates misdirected writes: copies random blocks over others.
#[test]
fn blocks_in_the_place_of_others() {
    for seed in 0..number("ZONESTORE_ZEA_DAMAGES", 200) {
        let mut random = fastrand::Rng::with_seed(seed);
        let (drive, model) = filled(random.u32(1..6));
        let end = drive.report_zone(ZONE).unwrap().write_pointer / 512;
        for _ in 0..random.u32(1..4) {
            let (from, to) = (random.u64(..end) * 512, random.u64(..end) * 512);
            let mut moved = vec![0; 512];
            let start = drive.geometry().start(ZONE);
            drive
                .read(zone::ByteOffset(start.0 + from), &mut moved)
                .unwrap();
            drive.decay(ZoneAddress::new(ZONE, to), 512, |block| {
                block.copy_from_slice(&moved)
            });
        }
        lost(drive.snapshot(), &model, &format!("seed {seed}"));
    }
}

/// Data that looks like the zone's own metadata, copied from another place or from an earlier life of the zone, is
/// returned as data and never found as an extent.
#[test]
fn data_that_looks_like_metadata() {
    let (drive, model) = filled(4);
    let end = drive.report_zone(ZONE).unwrap().write_pointer as usize;
    let mut old = vec![0; end];
    drive.read(drive.geometry().start(ZONE), &mut old).unwrap();
    let device: Arc<dyn ZonedDevice> = drive;
    let instance = Instance::open(device.clone(), ZONE, Sequence::default()).unwrap();
    // The metadata of one extent as the data of another.
    let (first, _) = model.extents[3];
    let block = (first.at.offset + first.stored) as usize - 512;
    let mut model = model;
    put(&instance, &mut model, 99, old[block..block + 512].to_vec());
    support::assert_same(&instance, &model);
    // The same, but the put is torn, so the last whole extent is the one before.
    let end = device.report_zone(ZONE).unwrap().write_pointer;
    let place = zone::ByteOffset(device.geometry().start(ZONE).0 + end);
    device.write(place, &old[block..block + 512]).unwrap();
    drop(instance);
    let instance = Instance::open(device.clone(), ZONE, Sequence::default()).unwrap();
    assert_eq!(instance.last(), model.placed().last().copied());
    // The former content of the zone, with each block at its old place.
    instance.reset().unwrap();
    let instance = format(&device, ZONE.0, 4, &Sequence::default(), 6).unwrap();
    let mut model = Model::default();
    put(&instance, &mut model, 1, old[1024..].to_vec());
    support::assert_same(&instance, &model);
    // The same torn, so that no metadata after it says that it is data.
    instance.reset().unwrap();
    let instance = format(&device, ZONE.0, 4, &Sequence::default(), 7).unwrap();
    let start = device.geometry().start(ZONE);
    device
        .write(zone::ByteOffset(start.0 + 1024), &old[1024..])
        .unwrap();
    drop(instance);
    let instance = Instance::open(device, ZONE, Sequence::default()).unwrap();
    assert_eq!(instance.backward().count() + instance.forward().count(), 0);
    assert_eq!(instance.last(), None);
}

#[test]
fn garbage_is_no_instance() {
    for seed in 0..500 {
        let mut random = fastrand::Rng::with_seed(seed);
        let g = geometry(ZoneKind::SequentialWriteRequired);
        let drive = MemoryDrive::new(g.clone()).unwrap();
        let mut junk = bytes(seed, 512 * random.usize(1..8));
        if random.bool() {
            junk[..8].copy_from_slice(b"ZSZEALBL");
        }
        drive.write(g.start(ZONE), &junk).unwrap();
        let opened = Instance::open(Arc::new(drive), ZONE, Sequence::default());
        assert!(opened.is_err());
    }
}

/// A zone with extents whose two labels are destroyed is reported as damaged, not as never formatted, whether it is
/// finished or not.
#[test]
fn both_labels_are_destroyed() {
    for is_finished in [false, true] {
        let (drive, _) = filled(4);
        if is_finished {
            drive.finish(ZONE).unwrap();
        }
        drive.decay(ZoneAddress::new(ZONE, 0), 2 * 512, |block| block.fill(0xa5));
        let opened = Instance::open(drive.clone(), ZONE, Sequence::default());
        assert!(matches!(opened, Err(Error::Corrupt { .. })), "{opened:?}");
        let never = Instance::open(drive, ZoneId(2), Sequence::default());
        assert!(
            matches!(never, Err(Error::NotFormatted { .. })),
            "{never:?}"
        );
    }
}

/// The write pointer has gone back: extents below it are there, and new ones can be put.
#[test]
fn a_zone_that_went_back() {
    let (drive, model) = filled(3);
    let end = drive.report_zone(ZONE).unwrap().write_pointer;
    let start = drive.geometry().start(ZONE);
    for written in (0..end).step_by(512) {
        let image = Arc::new(drive.snapshot());
        let mut kept = vec![0; written as usize];
        if written > 0 {
            image.read(start, &mut kept).unwrap();
        }
        image.reset(ZONE).unwrap();
        if written > 0 {
            image.write(start, &kept).unwrap();
        }
        let instance = match Instance::open(image.clone(), ZONE, Sequence::default()) {
            Ok(instance) => instance,
            Err(Error::NotFormatted { .. }) if written < 1024 => continue,
            Err(error) => panic!("{written}: {error}"),
        };
        let is_there = |(placed, _): &&(zea::Placed, Vec<u8>)| {
            // The extent's block of metadata follows its data.
            placed.at.offset + placed.stored <= written
        };
        let mut left = Model {
            extents: model.extents.iter().filter(is_there).cloned().collect(),
        };
        put(&instance, &mut left, 99, bytes(99, 700));
        support::assert_same(&instance, &left);
        drop(instance);
        let again = Instance::open(image, ZONE, Sequence::default()).unwrap();
        support::assert_same(&again, &left);
    }
}

/// Every operation on an offline zone returns an error that says so.
#[test]
fn a_zone_that_is_gone() {
    let (drive, model) = filled(3);
    let open = || Instance::open(drive.clone(), ZONE, Sequence::default());
    let instance = open().unwrap();
    drive.set_condition(ZONE, ZoneCondition::Offline).unwrap();
    let says_so = |error: Error| error.to_string().contains("zone 1 is offline");
    let (first, _) = &model.extents[0];
    assert!(instance.get(first.lba, first.length).is_err_and(says_so));
    assert!(
        instance
            .put(zea::LogicalAddress(1), &[1])
            .is_err_and(says_so)
    );
    assert!(instance.forward().all(|extent| extent.is_err_and(says_so)));
    assert!(zea::check(&instance, true).is_err_and(says_so));
    assert!(open().is_err_and(says_so));
}

/// A block that cannot be read is told, and all extents beside it are checked.
#[test]
fn a_check_goes_on_behind_what_cannot_be_read() {
    let (drive, model) = filled(4);
    let start = drive.geometry().start(ZONE).0;
    let end = drive.report_zone(ZONE).unwrap().write_pointer;
    for offset in (1024..end - 512).step_by(512) {
        let device = Arc::new(Changed {
            drive: drive.clone(),
            change: Unreadable(start + offset..start + offset + 1),
        });
        let instance = Instance::open(device, ZONE, Sequence::default()).unwrap();
        let checked = zea::check(&instance, true).unwrap();
        assert!(!checked.damage.is_empty(), "{offset}");
        let is_beside = |placed: &&zea::Placed| {
            !(placed.at.offset..placed.at.offset + placed.stored).contains(&offset)
        };
        let beside = model.placed();
        let beside = beside.iter().filter(is_beside);
        assert!(
            beside
                .clone()
                .all(|extent| checked.extents.contains(extent)),
            "{offset}"
        );
        assert_eq!(beside.count(), 17, "{offset}");
    }
}
