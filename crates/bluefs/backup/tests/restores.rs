//! Restores into a file system whose drive fails.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

#[path = "../../bluefs/tests/support/mod.rs"]
mod support;

use backup::tree::replace;
use backup::{Error, Packer, restore};
use bluefs::{BlueFs, Role};
use device::wrap::faults::{Fault, Faults, Plan};
use device::{MemoryDrive, ZonedDevice};
use std::io;
use std::sync::Arc;
use support::{format, geometry, mount};
use zone::ZoneCommand;

const FAULT: Fault = Fault::Io(io::ErrorKind::Other);

/// An empty file system on a drive with this plan.
fn planned(plan: Plan) -> (Arc<Faults<MemoryDrive>>, BlueFs) {
    let drive = MemoryDrive::new(geometry(64, 0, 0)).unwrap();
    let drive = Arc::new(Faults::new(drive));
    format(&*drive, Role::Alone);
    let device: Arc<dyn ZonedDevice> = drive.clone();
    let fs = mount(device).unwrap();
    drive.add(plan);
    (drive, fs)
}

/// Restores with the `k`-th flush failing. Answers whether names were given, and the error.
fn cut_at(k: u64, archive: &[u8]) -> (bool, Option<Error>) {
    let (_, fs) = planned(Plan::at(ZoneCommand::Flush, k, FAULT));
    let done = restore(&fs, archive, false, &mut |_| {});
    let names = fs.list("/").unwrap();
    (
        names.iter().any(|name| name != ".zonestore-restore"),
        done.err(),
    )
}

#[test]
fn an_error_says_whether_something_was_restored() {
    let mut packer = Packer::new(Vec::new());
    for path in ["/a", "/b"] {
        packer.file(path, 1, 7, &b"content"[..]).unwrap();
    }
    let (archive, _) = packer.finish().unwrap();
    let (mut before, mut behind) = (0, 0);
    for k in 1.. {
        match cut_at(k, &archive) {
            (_, None) => break,
            (true, Some(error)) => {
                assert!(matches!(error, Error::Placing(_)), "{k}: {error}");
                behind += 1;
            }
            (false, Some(_)) => before += 1,
        }
    }
    assert!(before > 0 && behind > 0, "{before} {behind}");
}

#[test]
fn a_clean_up_that_fails_does_not_hide_why_it_was_needed() {
    let mut packer = Packer::new(Vec::new());
    packer.file("/a", 1, 7, &b"content"[..]).unwrap();
    let (mut archive, _) = packer.finish().unwrap();
    // The first byte of the content.
    archive[512] ^= 1;
    let mut shown = 0;
    for k in 1.. {
        let (drive, fs) = planned(Plan::from(ZoneCommand::Flush, k, FAULT));
        let error = restore(&fs, &archive[..], false, &mut |_| {}).unwrap_err();
        if drive.struck() == 0 {
            break;
        }
        shown += u64::from(matches!(error, Error::Different { .. }));
    }
    assert!(shown > 0);
    let (_, fs) = planned(Plan::from(ZoneCommand::Flush, 1, FAULT));
    let error = replace(&fs, "/a", &mut &b"content"[..], None).unwrap_err();
    let first = matches!(error, Error::BlueFs(bluefs::Error::Drive(_)));
    assert!(first, "{error:?}");
}
