//! ZEAFS under thread schedules chosen by shuttle (`runtime::schedules`), which decides at every lock, also at those of
//! the drive in memory, which thread runs next.
//!
//!     cargo test -p zeafs --features schedules --test schedules

#![cfg(feature = "schedules")]
// Tests may panic: a failed `unwrap` is a failed test.
#![allow(clippy::unwrap_used)]

mod support;

use device::MemoryDrive;
use runtime::schedules::{explore, spawn};
use std::sync::Arc;
use support::{format, geometry, mount, read};
use zeafs::Directories;

/// Two threads open a log for appending that does not exist yet: neither replaces what the other has synced.
#[test]
fn a_log_that_two_threads_reopen_is_created_once() {
    explore(100, 1_000_000, || {
        let device = Arc::new(MemoryDrive::new(geometry(10, 1, 0)).unwrap());
        format(&*device);
        let fs = Arc::new(Directories::new(mount(device).unwrap()));
        let threads = [b"a", b"b"].map(|text| {
            let fs = fs.clone();
            spawn(move || {
                let mut log = fs.reopen("/1.log").unwrap();
                log.append(text).unwrap();
                log.sync().unwrap();
            })
        });
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        assert_eq!(read(fs.fs(), "/1.log").unwrap().len(), 2);
    });
}
