//! `fsck --repair`: removes the errors that `fsck` counts, while the store is not mounted.
//!
//! Primary rows come first: collections, onodes, the extents of their maps, shared blobs. Rows that nothing refers to
//! are removed, and rows that refer to missing ones are given up. An object that lost some of its bytes moves to a
//! collection of its own, with holes in their place, so that under its old name no client takes the holes for its data.
//! All of this is planned before anything is changed, and the caller is told by name. Rows derived from these are
//! repaired afterwards: references, the cleaning index, the freelist, the counters.
//!
//! At the end, metadata of the file system that is damaged in one copy is rewritten from the other.
//!
//! Each step may be interrupted: the next repair then has less to do. No zone is reset and no data moved.

mod changes;
mod data;
mod derived;
mod names;
mod onodes;
mod report;
#[cfg(test)]
mod tests;

pub use report::{GivenUp, RepairReport};

use crate::database::give_up_text_logs;
use crate::format::onode::Onode;
use crate::opened::Opened;
use crate::options::MountOptions;
use crate::revision::put_revised;
use crate::{Error, Result};
pub(crate) use changes::{Changes, forget_copies};
use device::ZonedDevice;
use kv::{Batch, Durability};
use names::Names;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// Names in the report for repairs of the metadata's files.
const COPIES: &str = "copies of metadata that differ";
const TEXT_LOGS: &str = "damaged text log of the database";

/// Rows that are looked at between two reports of progress.
const ROWS_AT_ONCE: u64 = 1024;

/// The step that a repair is in, for progress messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RepairStep {
    /// Looks for rows that are out of order, and changes nothing. Progress counts rows; some are looked at twice.
    Looking,
    /// Changes rows, and looks at those that follow from them. Progress counts rows.
    Changing,
    /// Compares the copies of the metadata. Progress counts bytes.
    Comparing,
}

/// Receives what a repair is at, and how many rows or bytes it has done of that.
type OnProgress<'a> = &'a mut dyn FnMut(RepairStep, u64);

/// A repair while it runs.
struct Repair<'a> {
    opened: Opened,
    now: u64,
    report: RepairReport,
    changes: Changes,
    progress: RefCell<OnProgress<'a>>,
    step: RepairStep,
    /// Rows looked at in this step.
    rows: Cell<u64>,
}

/// Repairs the store on `device`, which must not be mounted. Before the first change, `agree` is called with what will
/// be given up, even if that is nothing; if it returns false, nothing is changed.
pub(crate) fn repair(
    device: Arc<dyn ZonedDevice>,
    options: &MountOptions,
    agree: &mut dyn FnMut(&[GivenUp]) -> bool,
    progress: OnProgress<'_>,
) -> Result<RepairReport> {
    if options.read_only {
        return Err(Error::ReadOnly);
    }
    let now = options.runtime.unix_micros();
    let opened = Opened::open(device, options)?;
    let (opened, done) = put_in_order(opened, now, agree, progress);
    let done = done.and_then(|report| mend_copies(&opened, report, progress));
    let closed = opened.close();
    done.and_then(|report| closed.map(|()| report))
}

/// Rewrites metadata that is damaged in one of two copies. This loses nothing, so it needs no agreement.
fn mend_copies(
    opened: &Opened,
    mut report: RepairReport,
    progress: OnProgress<'_>,
) -> Result<RepairReport> {
    if report.is_done {
        let mut compared = 0;
        let scrubbed = opened.fs.scrub(&mut |bytes| {
            compared += bytes;
            progress(RepairStep::Comparing, compared);
            true
        })?;
        report.lost_files = scrubbed.map_or(Vec::new(), |scrubbed| scrubbed.lost);
        let deleted = give_up_text_logs(&opened.fs, &mut report.lost_files);
        report.repaired_many(TEXT_LOGS, deleted);
        // Also counts repairs by the mount and by the opening of the database.
        let mended = opened.fs.statistics();
        report.repaired_many(COPIES, mended.copies_repaired + mended.mended_at_mount);
    }
    Ok(report)
}

/// Repairs the rows of an open database.
pub(crate) fn put_in_order(
    opened: Opened,
    now: u64,
    agree: &mut dyn FnMut(&[GivenUp]) -> bool,
    progress: OnProgress<'_>,
) -> (Opened, Result<RepairReport>) {
    let mut repair = Repair {
        opened,
        now,
        report: RepairReport::default(),
        changes: Changes::default(),
        progress: RefCell::new(progress),
        step: RepairStep::Looking,
        rows: Cell::default(),
    };
    let done = repair.run(agree);
    let Repair { opened, report, .. } = repair;
    (opened, done.map(|()| report))
}

impl Repair<'_> {
    fn run(&mut self, agree: &mut dyn FnMut(&[GivenUp]) -> bool) -> Result<()> {
        self.begin(RepairStep::Looking);
        let mut names = Names::default();
        self.plan_collections(&mut names)?;
        self.plan_onodes(&mut names)?;
        self.plan_data(&mut names)?;
        if !agree(&self.report.given_up) {
            self.report.repaired.clear();
            return Ok(());
        }
        self.begin(RepairStep::Changing);
        self.apply()?;
        let shown = self.plan_references()?;
        self.apply()?;
        self.plan_index(&shown)?;
        self.plan_numbers(&names)?;
        self.apply()?;
        self.report.is_done = true;
        Ok(())
    }

    fn begin(&mut self, step: RepairStep) {
        self.step = step;
        self.rows.set(0);
        self.tell();
    }

    fn tell(&self) {
        (*self.progress.borrow_mut())(self.step, self.rows.get());
    }

    /// Writes what is planned.
    fn apply(&mut self) -> Result<()> {
        let changes = std::mem::take(&mut self.changes);
        if !changes.is_empty() {
            let mut first = Batch::default();
            forget_copies(&mut first);
            put_revised(&self.opened.kv, self.now, &mut first)?;
            self.opened.kv.write(&first, Durability::Buffered)?;
        }
        changes.apply(&self.opened.kv)
    }

    /// Calls `row` with every row of a namespace. A row that the database cannot read ends the repair with its error.
    fn rows(&self, namespace: u8, mut row: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        for found in self.opened.kv.scan(&[namespace], Some(&[namespace + 1])) {
            let (key, value) = found?;
            self.rows.set(self.rows.get() + 1);
            if self.rows.get().is_multiple_of(ROWS_AT_ONCE) {
                self.tell();
            }
            row(&key, &value)?;
        }
        Ok(())
    }

    /// All rows of a namespace at once, for namespaces with few.
    fn all(&self, namespace: u8) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut all = Vec::new();
        self.rows(namespace, |key, value| {
            all.push((key.to_vec(), value.to_vec()));
            Ok(())
        })?;
        Ok(all)
    }

    /// Plans the move of an onode, counted under `what`. A repair that was interrupted between the two changes would
    /// leave two owners of the onode's maps, of which the next repair would give up one.
    fn move_onode(&mut self, old: &[u8], new: &[u8], onode: &Onode, what: &str) {
        let batch = self.changes.batch();
        batch.put(new, &onode.encode());
        batch.delete(old);
        self.report.repaired(what);
    }

    /// Plans the removal of a row, counted under `what`.
    fn drop_row(&mut self, key: &[u8], what: &str) {
        self.changes.delete(key);
        self.report.repaired(what);
    }
}
