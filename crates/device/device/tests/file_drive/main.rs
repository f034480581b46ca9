//! The drive in a file as its users see it: locking, reopening, space, and files that are no
//! drives. What its commands do is the conformance suite's matter.
#![allow(clippy::unwrap_used)]

mod creating;
mod damage;
mod direct_io;
mod host_space;
mod interrupted_writes;
mod killed;
mod opening;

use device::file::format::{self, Entry};
use device::file::{CreateOptions, DriveUuid};
use device::rules::RestedZone;
use device::{FileDrive, FileDriveError, ZonedDevice};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use zone::{ByteOffset, Geometry, ZoneCondition, ZoneError, ZoneId, ZoneKind};

fn geometry() -> Geometry {
    Geometry {
        block_size: 4096,
        zone_size: 1 << 20,
        zone_capacity: 3 << 18,
        zone_count: 12,
        conventional_zones: 2,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 4,
        max_active_zones: 6,
        max_append_bytes: 1 << 17,
    }
}

struct Place {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

fn place() -> Place {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.zoned");
    Place {
        _directory: directory,
        path,
    }
}

/// Has this binary run one test, in another process. Of a name that no test has it would run none, and pass.
fn only(test: &str) -> [&str; 4] {
    let this = std::env::current_exe().unwrap();
    let mut list = std::process::Command::new(this);
    let listed = list.args(["--exact", test, "--list"]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.starts_with(test), "no test {test}: {listed}");
    ["--exact", test, "--nocapture", "--test-threads=1"]
}

/// A block that tells its zone, the round of resets it was written in, and its place.
fn told(zone: u32, round: u64, block: u64) -> Vec<u8> {
    let words = [u64::from(zone) + 1, round + 1, block + 1, 0x5a5a_5a5a];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.repeat(4096 / bytes.len())
}
