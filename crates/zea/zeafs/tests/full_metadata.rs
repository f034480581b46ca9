//! The log for metadata is full: nothing more is accepted than it has room for, so that a mount can always write.

use crate::support::{bytes, format, geometry, mount, read, write};
use device::MemoryDrive;
use std::sync::Arc;
use zeafs::{Error, ZeaFs};

fn name(n: usize) -> String {
    format!("{n:0>200}")
}

/// Creates a file with a few bytes, if it is accepted.
fn put(fs: &ZeaFs, n: usize, syncs: bool) -> Result<(), Error> {
    let mut writer = fs.create(&name(n))?;
    writer.append(&bytes(n as u64, 20))?;
    match syncs {
        true => writer.sync(),
        false => writer.close(),
    }
}

/// Creates files from number `first` on until one is refused; returns the number of that one.
fn fill(fs: &ZeaFs, first: usize, syncs: bool) -> usize {
    let mut n = first;
    loop {
        match put(fs, n, syncs) {
            Ok(()) => n += 1,
            Err(error) => {
                assert!(matches!(error, Error::MetadataFull { .. }), "{error}");
                return n;
            }
        }
    }
}

/// A file that is cut inside a piece takes more of the metadata.
#[test]
fn a_truncate_has_room_in_the_metadata() {
    let device = Arc::new(MemoryDrive::new(geometry(14, 1, 0)).unwrap());
    format(&*device);
    let fs = mount(device.clone()).unwrap();
    let put = |n: usize| write(&fs, &format!("{n:03}"), &bytes(n as u64, 20));
    let count = (0..).take_while(|n| put(*n).is_ok()).count();
    assert!(count > 100, "{count}");
    fs.unmount().unwrap();
    let fs = mount(device.clone()).unwrap();
    let mut cut = 0;
    for n in 0..count {
        match fs.reopen(&format!("{n:03}")).unwrap().truncate(1) {
            Ok(()) => cut += 1,
            Err(error) => assert!(matches!(error, Error::MetadataFull { .. }), "{error}"),
        }
        fs.sync_metadata().unwrap();
    }
    assert!(cut < count, "{cut}");
    // These need none.
    fs.reopen("000").unwrap().truncate(0).unwrap();
    fs.unmount().unwrap();
    let fs = mount(device).unwrap();
    assert_eq!(fs.metadata("000").unwrap().size, 0);
    assert_eq!(fs.metadata("001").unwrap().size, 1);
}

#[test]
fn what_was_accepted_has_room_in_the_metadata() {
    for (conventional_zones, syncs, ends) in [(1, false, true), (1, true, false), (0, true, true)] {
        let device = Arc::new(MemoryDrive::new(geometry(14, conventional_zones, 0)).unwrap());
        format(&*device);
        let fs = mount(device.clone()).unwrap();
        let count = fill(&fs, 0, syncs);
        assert!(count > 10, "{count}");
        // That stops no other change.
        fs.delete(&name(0)).unwrap();
        fs.sync_metadata().unwrap();
        if ends {
            fs.unmount().unwrap();
        }
        let fs = mount(device.clone()).unwrap();
        for n in 1..count {
            assert_eq!(read(&fs, &name(n)).unwrap(), bytes(n as u64, 20), "{n}");
        }
        for n in 1..count {
            fs.delete(&name(n)).unwrap();
            fs.sync_metadata().unwrap();
        }
        assert!(fill(&fs, count, syncs) - count >= count - 1);
        fs.unmount().unwrap();
    }
}
