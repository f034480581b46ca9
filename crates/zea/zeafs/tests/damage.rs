//! Damage that concerns a part, or that must not be taken for something else.

#[path = "../../zea/tests/support/unreadable.rs"]
mod unreadable;

use crate::support::{bytes, format, geometry, mount, read, write};
use device::changed::Changed;
use device::power_cut::CrashLimits;
use device::stats::Stats;
use device::{MemoryDrive, PowerCut, ZonedDevice};
use runtime::Runtime;
use std::sync::Arc;
use unreadable::Unreadable;
use zeafs::{Directories, Error, Examined, ZeaFs};
use zone::{ByteOffset, Geometry, ZoneAddress, ZoneCondition, ZoneId};

/// Zones whose halves are larger than one read of a search.
fn large_zones() -> Geometry {
    Geometry {
        block_size: 4096,
        zone_size: 32 << 20,
        zone_capacity: 32 << 20,
        ..geometry(10, 1, 0)
    }
}

/// LevelDB takes what it can read of a damaged log for all of it. The database that has one is not opened, which begins with a
/// lock; all others are.
#[test]
fn a_damaged_log_concerns_its_database_alone() {
    for damaged in [
        "000001.log",
        "MANIFEST-000002",
        "CURRENT",
        "000003.ldb",
        "LOG",
    ] {
        let device = Arc::new(MemoryDrive::new(geometry(12, 1, 0)).unwrap());
        format(&*device);
        let fs = Directories::new(mount(device.clone()).unwrap());
        for database in ["/one", "/two"] {
            fs.create_directory(database).unwrap();
            for name in [
                "000001.log",
                "MANIFEST-000002",
                "CURRENT",
                "000003.ldb",
                "LOG",
            ] {
                let name = format!("{database}/{name}");
                let seed = name.bytes().map(u64::from).sum();
                write(fs.fs(), &name, &bytes(seed, 900)).unwrap();
            }
        }
        fs.fs().unmount().unwrap();
        let name = format!("/two/{damaged}");
        let at = |device: &MemoryDrive| {
            let examined = Examined::of(device).unwrap();
            examined.file(&name).unwrap().places().next().unwrap()
        };
        device.decay(at(&device), 900, |bytes| bytes[500] ^= 1);
        let fs = Directories::new(mount(device.clone()).unwrap());
        fs.lock("/one/LOCK").unwrap();
        // Of a table LevelDB itself tells, and its text nobody reads.
        let is_told = damaged.ends_with("ldb") || damaged == "LOG";
        for _ in 0..2 {
            match fs.lock("/two/LOCK") {
                Ok(()) => assert!(is_told, "{name}"),
                Err(Error::DamagedFile { name: found, .. }) => assert_eq!(found, name),
                Err(error) => assert!(is_told, "{error}"),
            }
        }
        // What is not damaged can be got out without a mount.
        let examined = Examined::of(&*device).unwrap();
        for file in examined.files().filter(|file| !file.name.ends_with('/')) {
            let got = Examined::read(&*device, &file, 0, u64::MAX);
            match got {
                Ok(got) => assert_eq!(got.len(), 900),
                Err(error) => assert!(file.name == name && error.is_damage(), "{error}"),
            }
        }
        assert_eq!(Examined::of(&*device).unwrap().files().count(), 12);
    }
}

/// Both copies of the head are damaged, and in the second case the start of the first area too: files are found by the
/// areas, and a mount writes the head again.
#[test]
fn without_a_head_the_areas_say_what_is_there() {
    // Without files, nothing proves that the areas are not those of an earlier time.
    let device = Arc::new(MemoryDrive::new(geometry(9, 1, 0)).unwrap());
    format(&*device);
    device.write(ByteOffset(0), &[0; 1024]).unwrap();
    assert!(Examined::is_there(&*device).unwrap());
    assert!(matches!(mount(device), Err(Error::Corrupt { .. })));
    for (noise, blocks) in [(false, 2), (true, 2), (false, 3), (true, 3)] {
        let device = Arc::new(MemoryDrive::new(geometry(9, 1, 0)).unwrap());
        format(&*device);
        let fs = mount(device.clone()).unwrap();
        write(&fs, "a", &bytes(1, 500)).unwrap();
        // After a kill, the second area is the newer one.
        match blocks {
            2 => fs.unmount().unwrap(),
            _ => drop(fs),
        }
        device.decay(
            ZoneAddress::new(ZoneId(0), 0),
            512 * blocks,
            |head| match noise {
                true => fastrand::Rng::with_seed(3).fill(head),
                false => head.fill(0),
            },
        );
        let told = format!("{noise}, {blocks} blocks");
        assert!(Examined::is_there(&*device).unwrap(), "{told}");
        assert_eq!(Examined::of(&*device).unwrap().files().count(), 1, "{told}");
        for _ in 0..2 {
            let fs = mount(device.clone()).unwrap();
            assert_eq!(read(&fs, "a").unwrap(), bytes(1, 500), "{told}");
        }
        let mut head = vec![0; 512];
        device.read(ByteOffset(0), &mut head).unwrap();
        assert_eq!(&head[..8], b"ZSZEAFSM", "{told}");
    }
}

/// A zone for metadata goes back to any state that it ever was in, behind a clean end: files are as they were.
#[test]
fn either_zone_for_metadata_may_go_back_behind_an_unmount() {
    let device = Arc::new(MemoryDrive::new(geometry(11, 0, 0)).unwrap());
    format(&*device);
    let mut states = vec![device.snapshot()];
    let mut expected = Vec::new();
    for turn in 0..4 {
        let fs = mount(device.clone()).unwrap();
        expected.clear();
        for n in 0..4 {
            let (name, data) = (format!("db/{n}"), bytes(10 * turn + n, 700));
            write(&fs, &name, &data).unwrap();
            expected.push((name, data));
            states.push(device.snapshot());
        }
        fs.unmount().unwrap();
        states.push(device.snapshot());
    }
    let capacity = device.geometry().zone_capacity;
    for (number, state) in states.iter().enumerate() {
        for zone in [ZoneId(0), ZoneId(1)] {
            let written = state.report_zone(zone).unwrap().write_pointer;
            let written = written.min(capacity);
            let mut old = vec![0; written as usize];
            state
                .read(
                    state.geometry().absolute(ZoneAddress::new(zone, 0)),
                    &mut old,
                )
                .unwrap();
            // Also less than it ever had.
            for kept in (0..=written / 512)
                .rev()
                .take(8)
                .map(|n| 512 * n)
                .chain([0])
            {
                let image = Arc::new(device.snapshot());
                image.reset(zone).unwrap();
                if kept > 0 {
                    let at = image.geometry().absolute(ZoneAddress::new(zone, 0));
                    image.write(at, &old[..kept as usize]).unwrap();
                }
                let told = format!("state {number}, zone {zone}, {kept} bytes");
                let fs = mount(image).unwrap_or_else(|error| panic!("{told}: {error}"));
                for (name, data) in &expected {
                    assert!(read(&fs, name).unwrap() == *data, "{told}");
                }
            }
        }
    }
}

/// One flipped bit in a large checkpoint, which frames of acknowledged syncs follow far behind.
#[test]
fn damage_in_a_checkpoint_of_any_size_is_told() {
    let device = Arc::new(MemoryDrive::new(large_zones()).unwrap());
    format(&*device);
    let fs = mount(device.clone()).unwrap();
    for n in 0..1200 {
        fs.create(&format!("{n:0>4000}")).unwrap();
    }
    fs.unmount().unwrap();
    let fs = mount(device.clone()).unwrap();
    write(&fs, "acked", b"acked").unwrap();
    drop(fs);
    let middle = (16 << 20) + (2 << 20);
    device.decay(ZoneAddress::new(ZoneId(0), middle), 4096, |block| {
        block[7] ^= 1
    });
    let mounted = mount(device).map(|fs| fs.list("acked"));
    assert!(matches!(mounted, Err(Error::Corrupt { .. })), "{mounted:?}");
}

/// Where a mount cannot read a part of the metadata, it has all files or is refused. It is not refused for blocks that
/// hold nothing or something older, and an examination finds the files in either case.
#[test]
fn metadata_that_cannot_be_read() {
    const AREAS: [u64; 2] = [2, 4096];
    let names = [0, 1, 2].map(|n| format!("{n:0>4000}"));
    let device = Arc::new(MemoryDrive::new(large_zones()).unwrap());
    format(&*device);
    let fs = mount(device.clone()).unwrap();
    for name in &names {
        write(&fs, name, name.as_bytes()).unwrap();
    }
    fs.unmount().unwrap();
    mount(device.clone()).unwrap().unmount().unwrap();
    let clean = device.snapshot();
    // The last checkpoint is in the second area then.
    let fs = mount(device.clone()).unwrap();
    write(&fs, "acked", b"acked").unwrap();
    drop(fs);
    let killed = device.snapshot();
    let drive = |image: &MemoryDrive, from: u64, blocks: u64| {
        let change = Unreadable(4096 * from..4096 * (from + blocks));
        let drive = image.snapshot();
        Arc::new(Changed { drive, change })
    };
    let has_all = |drive: &dyn ZonedDevice| {
        let examined = Examined::of(drive).unwrap();
        names.iter().all(|name| examined.file(name).is_some())
    };
    // In blocks: each area has a checkpoint of three or four and then a frame.
    for (from, blocks, mounts) in [
        (AREAS[0] + 256, 1, true),
        (AREAS[0] + 259, 64, true),
        (AREAS[0] + 259, 65, false),
        (AREAS[1] + 256, 1, true),
        (AREAS[1], 1, true),
        (AREAS[1] + 1, 1, true),
        (AREAS[1] + 1, 2, true),
        (AREAS[1], 2, false),
        (AREAS[1], 4096, false),
        (AREAS[0], 1, false),
        (AREAS[0] + 1, 1, false),
        (AREAS[0], 4094, false),
    ] {
        let told = format!("{blocks} from {from}");
        let drive = drive(&clean, from, blocks);
        assert!(has_all(&*drive), "{told}");
        let unread = Examined::of(&*drive).unwrap().unread().cloned();
        assert_eq!(unread.is_none(), mounts, "{told}: {unread:?}");
        let mounted = mount(drive);
        match mounted {
            Ok(fs) => assert!(mounts && read(&fs, &names[2]).is_ok(), "{told}"),
            Err(error) => assert!(!mounts && !error.is_damage(), "{told}: {error}"),
        }
    }
    let mut mounts = 0;
    for (image, acked) in [(&clean, false), (&killed, true)] {
        for from in AREAS.iter().flat_map(|area| *area..area + 10) {
            for blocks in 1..12 {
                if let Ok(fs) = mount(drive(image, from, blocks)) {
                    mounts += 1;
                    assert_eq!(fs.list("").len(), 3 + usize::from(acked));
                }
            }
        }
    }
    assert!(mounts > 50, "{mounts}");
}

/// One of two sequential zones for metadata is gone: nobody knows whether it was the newer one, so nothing is mounted,
/// and files can be taken out.
#[test]
fn a_zone_for_metadata_that_is_gone() {
    for zone in [ZoneId(0), ZoneId(1)] {
        let device = Arc::new(MemoryDrive::new(geometry(11, 0, 0)).unwrap());
        format(&*device);
        let fs = mount(device.clone()).unwrap();
        write(&fs, "a", b"a").unwrap();
        fs.unmount().unwrap();
        device.set_condition(zone, ZoneCondition::Offline).unwrap();
        assert!(Examined::is_there(&*device).unwrap());
        let examined = Examined::of(&*device).unwrap();
        assert!(examined.unread().is_some());
        let file = examined.file("a").unwrap();
        assert_eq!(Examined::read(&*device, &file, 0, 9).unwrap(), b"a");
        let mounted = mount(device);
        assert!(matches!(mounted, Err(Error::Drive(_))), "{mounted:?}");
    }
}

/// Blocks that are larger than the parts of a file that have a checksum each.
#[test]
fn large_blocks() {
    let g = Geometry {
        block_size: 64 << 10,
        zone_size: 4 << 20,
        zone_capacity: 4 << 20,
        ..geometry(10, 1, 0)
    };
    let device = Arc::new(MemoryDrive::new(g).unwrap());
    format(&*device);
    let fs = ZeaFs::mount_with(device, Runtime::seeded(1), 5 << 20).unwrap();
    let data = bytes(1, 100_000);
    write(&fs, "a", &data).unwrap();
    let reader = fs.open("a").unwrap();
    for at in [0, 16_384, 20_000, 70_000, 99_100] {
        let mut found = [0; 900];
        assert_eq!(reader.read_at(at as u64, &mut found).unwrap(), 900, "{at}");
        assert!(found == data[at..at + 900], "{at}");
    }
    assert!(read(&fs, "a").unwrap() == data);
}

/// A sync finds the log full and writes a checkpoint. What the power cut takes, and what cannot be read of it then, is not
/// taken for proof that the state before it is the newest.
#[test]
fn a_sync_that_wrote_a_checkpoint_counts() {
    let device = Arc::new(PowerCut::new(geometry(12, 1, 0)).unwrap());
    format(&*device);
    let fs = mount(device.clone()).unwrap();
    let epoch = || Examined::epoch_of(&*device).unwrap();
    let mounted = epoch();
    let mut n = 0;
    while epoch() == mounted {
        n += 1;
        write(&fs, &n.to_string(), b"acked").unwrap();
    }
    let middle = device.geometry().conventional_capacity() / 2;
    let mut refused = 0;
    for state in device.crash_states(CrashLimits::default()) {
        for first in [1024, middle] {
            let drive = Arc::new(device.image(&state));
            let change = Unreadable(first..first + 512);
            match mount(Arc::new(Changed { drive, change })) {
                Ok(fs) => assert_eq!(read(&fs, &n.to_string()).unwrap(), b"acked"),
                Err(error) => {
                    assert!(!error.is_damage(), "{error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 0);
}

/// A frame is damaged, and the one that says that it was durable cannot be read behind its first block.
#[test]
fn a_frame_that_cannot_be_read_tells_by_its_header() {
    let device = Arc::new(MemoryDrive::new(large_zones()).unwrap());
    format(&*device);
    let fs = mount(device.clone()).unwrap();
    write(&fs, "acked", b"acked").unwrap();
    fs.create(&"0".repeat(4000)).unwrap();
    fs.create(&"1".repeat(4000)).unwrap();
    fs.sync_metadata().unwrap();
    drop(fs);
    // The second area: a checkpoint, frame 1, the one of "acked", and that of the two names.
    let block = |n: u64| (4096 + n) * 4096;
    device.decay(ZoneAddress::new(ZoneId(0), block(2)), 4096, |block| {
        block[80] ^= 1
    });
    let refused = mount(device.clone());
    assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
    let change = Unreadable(block(4)..block(5));
    let drive = device.clone();
    let drive = Arc::new(Changed { drive, change });
    assert!(Examined::of(&*drive).unwrap().unread().is_some());
    let refused = mount(drive);
    assert!(matches!(refused, Err(Error::Drive(_))), "{refused:?}");
}

#[test]
fn the_epoch_is_found_without_a_search() {
    let device = Stats::new(MemoryDrive::new(large_zones()).unwrap());
    format(&device);
    let epoch = Examined::of(&device).unwrap().epoch();
    let read = |look: &dyn Fn()| {
        let before = device.snapshot();
        look();
        device.snapshot().since(&before).read.bytes
    };
    assert!(read(&|| assert_eq!(Examined::epoch_of(&device).unwrap(), epoch)) < 1 << 20);
    assert!(read(&|| assert!(Examined::of(&device).is_ok())) > 30 << 20);
}
