//! Compares the cost of an LSM tree on a drive with a translation layer with that on a drive with zones.
//!
//! The scale is 1 to 1,024: 3.75 GB for 3.84 TB, SSTs of 512 KiB for 512 MiB, flash superblocks of 2 MiB for 2 GiB,
//! and a piece of one block for 4 MiB. The tree of `lsm.rs` is filled in order to 80 % of the drive, then overwritten
//! with eight merges at a time.

use crate::expected::Expected;
use crate::experiment::{Experiment, Outcome, Run, Stopped};
use crate::lsm::{Files, Tree};
use drive_model::flash::ManagementShape;
use drive_model::{FlashDrive, FlashProfile, Lba, Model, Request, RequestKind, Time};
use plot::{Figure, Panel};
use runtime::HashMap;

const TABLE: u32 = 128;
const MERGES: usize = 8;
/// Overwrites of half the drive each: without discard, with discard, and in zones.
const ROUNDS: usize = 26;
const ROUNDS_WITH_DISCARD: usize = 16;
const ROUNDS_IN_ZONES: usize = 6;

pub const FIGURE_5_11: Experiment = Experiment {
    id: "figure-5.11",
    title: "Mixed streams cost a translation layer dearly",
    source: "CMU-CS-20-130, section 5.6.2",
    expected: || {
        vec![
            Expected::value("fillseq: write amplification", "", 1.0),
            Expected::at_most("first overwrite of half the drive", "", 1.1).ours(),
            Expected::range("the eleventh", "", 1.5, 4.5).words("gradually more"),
            Expected::value("from the 21st on, least", "", 5.0).by(0.5),
            Expected::value("from the 21st on, most", "", 5.0).by(0.6),
            Expected::at_most("with discard ÷ without, the 16th", "", 0.7).ours(),
            Expected::at_most("space that is live, at most", "", 0.9).ours(),
        ]
    },
    measure: |run| {
        let without = conventional(run, false, ROUNDS)?;
        // With discard, the drive is told of each SST that is removed.
        let told = conventional(run, true, ROUNDS_WITH_DISCARD)?;
        let each = &without.each;
        let late = each[20..].iter().copied();
        let measured = vec![
            without.fill,
            each[0],
            each[10],
            late.clone().fold(f64::INFINITY, f64::min),
            late.fold(0.0, f64::max),
            told.each[15] / each[15],
            without.live.max(told.live),
        ];
        let panel = amplification().line("XFS", without.points());
        let panel = panel.line("XFS with discard", told.points());
        Ok(Outcome::from(measured).with(figure(
            "5.11",
            "Write amplification of a conventional SSD",
            panel,
        )))
    },
};

pub const FIGURE_5_12: Experiment = Experiment {
    id: "figure-5.12",
    title: "Zones cost an LSM tree next to nothing",
    source: "CMU-CS-20-130, section 5.6.3",
    expected: || {
        // SSTs that are smaller than a zone leave zones that are finished before they are full.
        vec![
            Expected::value("fillseq: write amplification", "", 1.0),
            Expected::range("overwrites: least", "", 1.01, 1.25).ours(),
            Expected::range("overwrites: most", "", 1.01, 1.25).ours(),
            Expected::value("overwrites: mean", "", 1.2).by(0.15),
            Expected::at_most("space that is live, at most", "", 0.9).ours(),
        ]
    },
    measure: |run| {
        let zoned = zoned(run)?;
        let each = zoned.each.iter().copied();
        let measured = vec![
            zoned.fill,
            each.clone().fold(f64::INFINITY, f64::min),
            each.clone().fold(0.0, f64::max),
            each.sum::<f64>() / zoned.each.len() as f64,
            zoned.live,
        ];
        let panel = amplification().line("BlueFS on zones", zoned.points());
        Ok(Outcome::from(measured).with(figure("5.12", "Write amplification of a ZNS SSD", panel)))
    },
};

fn amplification() -> Panel {
    Panel::new("", "written ÷ capacity", "write amplification")
}

fn figure(number: &'static str, title: &'static str, panel: Panel) -> Figure {
    Figure {
        number,
        title,
        caption:
            "fillseq to 80 % of the drive, then overwrite; a point for each half of the drive."
                .into(),
        panels: vec![panel],
    }
}

/// Write amplification of the fill, and of each following write of half the drive.
struct Costs {
    fill: f64,
    each: Vec<f64>,
    /// The largest share of the drive that was live.
    live: f64,
}

impl Costs {
    fn points(&self) -> Vec<(f64, f64)> {
        let fill = [(0.0, self.fill), (0.8, self.fill)];
        let each = self.each.iter().enumerate();
        let each = each.map(|(n, cost)| (0.8 + (n + 1) as f64 / 2.0, *cost));
        fill.into_iter().chain(each).collect()
    }
}

/// The first refusal of a drive, if there is one.
#[derive(Default)]
struct Refusals(Option<Stopped>);

impl Refusals {
    fn submit(&mut self, drive: &mut FlashDrive, request: Request, now: Time) -> Time {
        let done = drive.submit(request, now);
        if let Err(reason) = done.result {
            self.0
                .get_or_insert_with(|| Stopped::refused(&request, &reason));
        }
        done.at
    }

    fn no_room(&mut self) {
        self.0.get_or_insert_with(|| Stopped::Refused {
            request: "a new file".into(),
            reason: "nothing is free".into(),
        });
    }
}

/// A file system like XFS: extents of the size of an SST, taken from free space cyclically. The drive is told of
/// freed space only with `discards`.
struct Xfs {
    drive: FlashDrive,
    now: Time,
    refused: Refusals,
    discards: bool,
    free: Vec<bool>,
    next: usize,
    files: HashMap<u32, (usize, u32)>,
    /// The most files at a time, of an extent each.
    most: usize,
}

impl Xfs {
    fn new(drive: FlashDrive, discards: bool) -> Self {
        let extents = (drive.blocks() / u64::from(TABLE)) as usize;
        Self {
            drive,
            now: Time::START,
            refused: Refusals::default(),
            discards,
            free: vec![true; extents],
            next: 0,
            files: HashMap::default(),
            most: 0,
        }
    }
}

impl Files for Xfs {
    fn create(&mut self, number: u32) {
        let all = self.free.len();
        let mut from_next = self.next..self.next + all;
        let Some(found) = from_next.find(|extent| self.free[extent % all]) else {
            return self.refused.no_room();
        };
        let extent = found % all;
        self.free[extent] = false;
        self.next = extent + 1;
        self.files.insert(number, (extent, 0));
        self.most = self.most.max(self.files.len());
    }

    fn append(&mut self, number: u32, blocks: u32) {
        let Some((extent, offset)) = self.files.get_mut(&number) else {
            return;
        };
        let lba = *extent as u64 * u64::from(TABLE) + u64::from(*offset);
        *offset += blocks;
        let write = Request::write(Lba(lba), blocks);
        self.now = self.refused.submit(&mut self.drive, write, self.now);
    }

    fn close(&mut self, _number: u32) {}

    fn remove(&mut self, number: u32) {
        let Some((extent, _)) = self.files.remove(&number) else {
            return;
        };
        self.free[extent] = true;
        if self.discards {
            let trim = Request::trim(Lba(extent as u64 * u64::from(TABLE)), TABLE);
            self.now = self.refused.submit(&mut self.drive, trim, self.now);
        }
    }
}

/// BlueFS as the thesis CMU-CS-20-130 ran it (section 5.3.2): an SST has a zone of its own, which is finished when
/// the SST is closed and reset when it is removed. Here, so has a log.
struct Zones {
    drive: FlashDrive,
    now: Time,
    refused: Refusals,
    zone_blocks: u64,
    empty: Vec<u64>,
    files: HashMap<u32, (u64, u32)>,
    /// The most files at a time, of a zone each.
    most: usize,
}

impl Zones {
    /// Zones are as large as a table.
    fn new(drive: FlashDrive) -> Self {
        let zones = drive.blocks() / u64::from(TABLE);
        Self {
            drive,
            now: Time::START,
            refused: Refusals::default(),
            zone_blocks: u64::from(TABLE),
            empty: (0..zones).rev().collect(),
            files: HashMap::default(),
            most: 0,
        }
    }

    fn run(&mut self, request: Request) {
        self.now = self.refused.submit(&mut self.drive, request, self.now);
    }
}

impl Files for Zones {
    fn create(&mut self, number: u32) {
        let Some(zone) = self.empty.pop() else {
            return self.refused.no_room();
        };
        self.files.insert(number, (zone, 0));
        self.most = self.most.max(self.files.len());
    }

    fn append(&mut self, number: u32, blocks: u32) {
        let Some((zone, offset)) = self.files.get_mut(&number) else {
            return;
        };
        let lba = *zone * self.zone_blocks + u64::from(*offset);
        *offset += blocks;
        self.run(Request::write(Lba(lba), blocks));
    }

    fn close(&mut self, number: u32) {
        if let Some((zone, blocks)) = self.files.get(&number)
            && *blocks < TABLE
        {
            let lba = Lba(zone * self.zone_blocks);
            self.run(Request::on_zone(RequestKind::FinishZone, lba));
        }
    }

    fn remove(&mut self, number: u32) {
        let Some((zone, _)) = self.files.remove(&number) else {
            return;
        };
        let lba = Lba(zone * self.zone_blocks);
        self.run(Request::on_zone(RequestKind::ResetZone, lba));
        self.empty.insert(0, zone);
    }
}

/// Files on a flash drive, which counts the blocks that it programs.
trait OnFlash: Files {
    fn flash(&self) -> &FlashDrive;
    fn refused(&mut self) -> &mut Refusals;
    /// The most files at a time, each of which takes the space of an SST.
    fn most(&self) -> usize;
}

impl OnFlash for Xfs {
    fn flash(&self) -> &FlashDrive {
        &self.drive
    }

    fn refused(&mut self) -> &mut Refusals {
        &mut self.refused
    }

    fn most(&self) -> usize {
        self.most
    }
}

impl OnFlash for Zones {
    fn flash(&self) -> &FlashDrive {
        &self.drive
    }

    fn refused(&mut self) -> &mut Refusals {
        &mut self.refused
    }

    fn most(&self) -> usize {
        self.most
    }
}

/// Fills the tree, then overwrites it in `rounds` rounds of half the drive each.
fn costs(
    run: &mut Run<'_>,
    what: &str,
    files: impl OnFlash,
    rounds: usize,
) -> Result<Costs, Stopped> {
    let blocks = files.flash().blocks();
    let tables = (blocks * 8 / 10 / u64::from(TABLE)) as usize;
    let mut tree = Tree::new(files, TABLE, tables, MERGES, run.random(7));
    tree.fill(tables);
    let fill = tree.files.flash().statistics().write_amplification();
    let mut each = Vec::new();
    for round in 0..rounds {
        run.next(&format!("{what}, {} of {rounds}", round + 1))?;
        let before = tree.files.flash().statistics();
        for _ in 0..blocks / 2 {
            tree.step();
        }
        let after = tree.files.flash().statistics();
        let programmed = after.flash.programmed_blocks - before.flash.programmed_blocks;
        each.push(programmed as f64 / (after.written_blocks - before.written_blocks) as f64);
        if let Some(refused) = tree.files.refused().0.take() {
            return Err(refused);
        }
    }
    let live = tree.files.most() as f64 * f64::from(TABLE) / blocks as f64;
    Ok(Costs { fill, each, live })
}

fn conventional(run: &mut Run<'_>, discards: bool, rounds: usize) -> Result<Costs, Stopped> {
    let mut profile = FlashProfile::named("ssd-15gb")?;
    profile.flash.programs_per_block /= 4;
    if let ManagementShape::PageMapped { capacity_bytes, .. } = &mut profile.management {
        *capacity_bytes /= 4;
    }
    let what = if discards { "XFS with discard" } else { "XFS" };
    costs(run, what, Xfs::new(profile.drive()?, discards), rounds)
}

fn zoned(run: &mut Run<'_>) -> Result<Costs, Stopped> {
    let mut profile = FlashProfile::named("zns-zn540")?;
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
    costs(run, "zones", Zones::new(profile.drive()?), ROUNDS_IN_ZONES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that finds no room takes none of another's, and the run is told.
    #[test]
    fn a_full_drive_refuses_files() {
        fn fill(mut files: impl OnFlash) {
            let room = (files.flash().blocks() / u64::from(TABLE)) as u32;
            (0..room).for_each(|number| files.create(number));
            assert!(files.refused().0.is_none());
            files.create(room);
            files.append(room, 1);
            files.close(room);
            files.remove(room);
            assert_eq!(files.flash().statistics().written_blocks, 0);
            assert_eq!(files.most(), room as usize);
            let refused = files.refused().0.take();
            assert!(
                matches!(refused, Some(Stopped::Refused { .. })),
                "{refused:?}"
            );
        }
        let drive = |name| FlashProfile::named(name).unwrap().drive().unwrap();
        fill(Xfs::new(drive("ssd-15gb"), true));
        fill(Zones::new(drive("zns-zn540")));
    }
}
