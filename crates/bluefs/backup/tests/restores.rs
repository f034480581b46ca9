//! Restores into a file system whose drive fails.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

#[path = "../../bluefs/tests/support/mod.rs"]
mod support;

use backup::{Error, Packer, restore};
use bluefs::Role;
use device::wrap::faults::{Fault, Faults, Plan};
use device::{MemoryDrive, ZonedDevice};
use std::io;
use std::sync::Arc;
use support::{format, geometry, mount};
use zone::ZoneCommand;

/// Restores with the `k`-th flush failing. Answers whether names were given, and the error.
fn cut_at(k: u64, archive: &[u8]) -> (bool, Option<Error>) {
    let drive = MemoryDrive::new(geometry(64, 0, 0)).unwrap();
    let drive = Arc::new(Faults::new(drive));
    format(&*drive, Role::Alone);
    let device: Arc<dyn ZonedDevice> = drive.clone();
    let fs = mount(device).unwrap();
    let fault = Fault::Io(io::ErrorKind::Other);
    drive.add(Plan::at(ZoneCommand::Flush, k, fault));
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
