//! Section 5.6 of the main document: what an LSM tree costs a drive with a translation layer, and what
//! with zones (figures 5.11 and 5.12).
//!
//! The scale is 1 to 1,024: 3.75 GB for 3.84 TB, tables of 512 KiB for 512 MiB, superblocks of 2 MiB for
//! 2 GiB; a piece is a block, for 4 MiB. The tree of `common/lsm.rs` is filled in order to 80 % of the
//! drive, then overwritten with eight merges at a time.
#![allow(clippy::unwrap_used)]

mod common;

use common::lsm::{Files, Tree};
use drive_model::flash::ManagementShape;
use drive_model::{FlashDrive, FlashProfile, Lba, Model, Operation, Request, Time};
use std::collections::HashMap;

const TABLE: u32 = 128;
const MERGES: usize = 8;

/// A file system like XFS: extents of the size of a table, from free space in turn; freed space is not
/// told to the drive unless it is asked to.
struct Xfs {
    drive: FlashDrive,
    now: Time,
    discards: bool,
    free: Vec<bool>,
    next: usize,
    files: HashMap<u32, (usize, u32)>,
}

impl Xfs {
    fn new(drive: FlashDrive, discards: bool) -> Self {
        let extents = (drive.blocks() / u64::from(TABLE)) as usize;
        Self {
            drive,
            now: Time::START,
            discards,
            free: vec![true; extents],
            next: 0,
            files: HashMap::new(),
        }
    }
}

impl Files for Xfs {
    fn create(&mut self, number: u32) {
        let all = self.free.len();
        let found = (self.next..self.next + all).find(|extent| self.free[extent % all]);
        let extent = found.unwrap() % all;
        self.free[extent] = false;
        self.next = extent + 1;
        self.files.insert(number, (extent, 0));
    }

    fn append(&mut self, number: u32, blocks: u32) {
        let (extent, offset) = self.files.get_mut(&number).unwrap();
        let lba = *extent as u64 * u64::from(TABLE) + u64::from(*offset);
        *offset += blocks;
        let done = self
            .drive
            .submit(Request::write(Lba(lba), blocks), self.now);
        done.result.unwrap();
        self.now = done.at;
    }

    fn close(&mut self, _number: u32) {}

    fn remove(&mut self, number: u32) {
        let (extent, _) = self.files.remove(&number).unwrap();
        self.free[extent] = true;
        if self.discards {
            let first = Lba(extent as u64 * u64::from(TABLE));
            self.drive.submit(Request::trim(first, TABLE), self.now);
        }
    }
}

/// BlueFS as the main document ran it (section 5.3.2): a table has a zone of its own, which is finished
/// when the table is closed and reset when it is removed; logs follow on each other in zones.
struct Zones {
    drive: FlashDrive,
    now: Time,
    zone_blocks: u64,
    empty: Vec<u64>,
    files: HashMap<u32, (u64, u32)>,
}

impl Zones {
    fn new(drive: FlashDrive) -> Self {
        let geometry = drive.zones().unwrap().geometry().clone();
        assert_eq!(geometry.zone_capacity, u64::from(TABLE) * 4096);
        Self {
            drive,
            now: Time::START,
            zone_blocks: geometry.zone_size / 4096,
            empty: (0..u64::from(geometry.zone_count)).rev().collect(),
            files: HashMap::new(),
        }
    }

    fn run(&mut self, request: Request) {
        let done = self.drive.submit(request, self.now);
        done.result.unwrap();
        self.now = done.at;
    }
}

impl Files for Zones {
    fn create(&mut self, number: u32) {
        let zone = self.empty.pop().unwrap();
        self.files.insert(number, (zone, 0));
    }

    fn append(&mut self, number: u32, blocks: u32) {
        let (zone, offset) = self.files.get_mut(&number).unwrap();
        let lba = *zone * self.zone_blocks + u64::from(*offset);
        *offset += blocks;
        self.run(Request::write(Lba(lba), blocks));
    }

    fn close(&mut self, number: u32) {
        let (zone, blocks) = self.files[&number];
        if blocks < TABLE {
            let lba = Lba(zone * self.zone_blocks);
            self.run(Request::on_zone(Operation::FinishZone, lba));
        }
    }

    fn remove(&mut self, number: u32) {
        let (zone, _) = self.files.remove(&number).unwrap();
        let lba = Lba(zone * self.zone_blocks);
        self.run(Request::on_zone(Operation::ResetZone, lba));
        self.empty.insert(0, zone);
    }
}

/// Fills and overwrites: the write amplification of the fill, and of each further drive that is written.
fn run<F: Files>(
    what: &str,
    files: F,
    blocks: u64,
    rounds: usize,
    drive: impl Fn(&F) -> &FlashDrive,
) -> (f64, Vec<f64>) {
    let tables = (blocks * 8 / 10 / u64::from(TABLE)) as usize;
    let mut tree = Tree::new(files, TABLE, tables, MERGES);
    tree.fill(tables);
    let fill = drive(&tree.files).statistics().write_amplification();
    let mut each = Vec::new();
    for _ in 0..rounds {
        let before = drive(&tree.files).statistics();
        for _ in 0..blocks / 2 {
            tree.step();
        }
        let after = drive(&tree.files).statistics();
        let programmed = after.flash.programmed_blocks - before.flash.programmed_blocks;
        each.push(programmed as f64 / (after.written_blocks - before.written_blocks) as f64);
        let live = tree.live_blocks() as f64 / blocks as f64;
        assert!(live < 0.9, "{live}");
    }
    println!("{what}: fill {fill:.2}, then of each half of the drive {each:.2?}");
    (fill, each)
}

fn conventional(discards: bool, rounds: usize) -> (f64, Vec<f64>) {
    let mut profile = FlashProfile::named("ssd-15gb").unwrap();
    profile.flash.programs_per_block /= 4;
    if let ManagementShape::PageMapped { capacity_bytes, .. } = &mut profile.management {
        *capacity_bytes /= 4;
    }
    let drive = profile.drive().unwrap();
    let blocks = drive.blocks();
    let what = if discards {
        "with discard"
    } else {
        "no discard"
    };
    let files = Xfs::new(drive, discards);
    run(what, files, blocks, rounds, |xfs| &xfs.drive)
}

/// Figure 5.11: 1 while filling, then gradually to about 5.
#[test]
fn mixed_streams_cost_a_translation_layer_dearly() {
    let (fill, each) = conventional(false, 26);
    assert_eq!(fill, 1.0);
    assert!(each[0] < 1.1, "{each:?}");
    assert!((1.5..4.5).contains(&each[10]), "{each:?}");
    for late in &each[20..] {
        assert!((4.5..5.6).contains(late), "{each:?}");
    }
    // What a table's removal would have told the drive.
    let (_, told) = conventional(true, 16);
    assert!(told[15] < 0.7 * each[15], "{told:?}");
}

/// Figure 5.12: 1 while filling, then 1.2 on average, for small tables leave zones that are finished.
#[test]
fn zones_cost_next_to_nothing() {
    let mut profile = FlashProfile::named("zns-zn540").unwrap();
    // The zones of the same flash: 512 KiB, at 1/1,024 of 512 MiB.
    let flash = &mut profile.flash;
    (flash.channels, flash.dies_per_channel, flash.planes) = (4, 1, 2);
    (flash.page_bytes, flash.pages_per_program) = (16_384, 1);
    flash.programs_per_block = 4;
    if let ManagementShape::Zoned(zones) = &mut profile.management {
        zones.zones = 7_325;
        zones.zone_size_bytes = u64::from(TABLE) * 4096;
        (zones.max_open_zones, zones.max_active_zones) = (14, 14);
    }
    let drive = profile.drive().unwrap();
    let blocks = drive.blocks();
    let (fill, each) = run("zones", Zones::new(drive), blocks, 6, |zones| &zones.drive);
    assert_eq!(fill, 1.0);
    for late in &each {
        assert!((1.01..1.25).contains(late), "{each:?}");
    }
}
