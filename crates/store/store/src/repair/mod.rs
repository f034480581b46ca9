//! `fsck --repair`: brings what `fsck` counts to nothing, while the store is not mounted.
//!
//! What stands for itself comes first: collections, onodes, the extents of their maps, shared blobs. Of these, rows
//! that nothing refers to go, and what refers to rows that are not there is given up. An object that lost some of its
//! bytes goes to a collection of its own, with holes in their place: under its old name nobody takes them for its own.
//! All of that is planned before anything is changed, and the caller is told by name. What follows from these rows
//! comes behind them: references, the cleaning index, the freelist, the counters.
//!
//! At the end, what of the file system below is damaged in one copy is written anew from the other one.
//!
//! Every step may be cut off: the next repair finds less to do. Zones are not reset here, and nothing is moved.

mod changes;
mod data;
mod derived;
mod names;
mod onodes;
mod report;

pub use report::{GivenUp, RepairReport};

use crate::database::give_up_text_logs;
use crate::opened::Opened;
use crate::options::MountOptions;
use crate::{Error, Result};
pub(crate) use changes::Changes;
use device::ZonedDevice;
use names::Names;
use std::sync::Arc;

/// What a repair has done of the metadata's copies.
const COPIES: &str = "copies of metadata that differ";
const TEXT_LOGS: &str = "damaged text log of the database";

/// A repair on its way.
struct Repair {
    opened: Opened,
    now: u64,
    report: RepairReport,
    changes: Changes,
}

/// Repairs the store on `device`, which nobody has mounted. `agree` is asked with what will be given up, even if that
/// is nothing, before the first change; if it answers false there is none.
pub(crate) fn repair(
    device: Arc<dyn ZonedDevice>,
    options: &MountOptions,
    agree: &mut dyn FnMut(&[GivenUp]) -> bool,
) -> Result<RepairReport> {
    if options.read_only {
        return Err(Error::ReadOnly);
    }
    let now = options.runtime.unix_micros();
    let opened = Opened::open(device, options)?;
    let (opened, done) = put_in_order(opened, now, agree);
    let done = done.and_then(|report| mend_copies(&opened, report));
    let closed = opened.close();
    done.and_then(|report| closed.map(|()| report))
}

/// Writes anew what of the file system below is damaged in one of two copies. Nothing is lost by that, so nobody is asked.
fn mend_copies(opened: &Opened, mut report: RepairReport) -> Result<RepairReport> {
    if report.is_done {
        let scrubbed = opened.fs.scrub(&mut |_| true)?;
        let mut lost = scrubbed.map_or(Vec::new(), |scrubbed| scrubbed.lost);
        report.repaired_many(TEXT_LOGS, give_up_text_logs(&opened.fs, &mut lost));
        // The mount and the opening of the database may have found some as well.
        let mended = opened.fs.statistics();
        report.repaired_many(COPIES, mended.copies_repaired + mended.mended_at_mount);
    }
    Ok(report)
}

/// The same, once the database is open.
pub(crate) fn put_in_order(
    opened: Opened,
    now: u64,
    agree: &mut dyn FnMut(&[GivenUp]) -> bool,
) -> (Opened, Result<RepairReport>) {
    let mut repair = Repair {
        opened,
        now,
        report: RepairReport::default(),
        changes: Changes::default(),
    };
    let done = repair.run(agree);
    let Repair { opened, report, .. } = repair;
    (opened, done.map(|()| report))
}

impl Repair {
    fn run(&mut self, agree: &mut dyn FnMut(&[GivenUp]) -> bool) -> Result<()> {
        let mut names = Names::default();
        self.plan_collections(&mut names)?;
        self.plan_onodes(&mut names)?;
        self.plan_data(&mut names)?;
        if !agree(&self.report.given_up) {
            self.report.repaired.clear();
            return Ok(());
        }
        self.apply()?;
        let shown = self.plan_references()?;
        self.apply()?;
        self.plan_index(&shown)?;
        self.plan_numbers(&names)?;
        self.apply()?;
        self.report.is_done = true;
        Ok(())
    }

    fn apply(&mut self) -> Result<()> {
        std::mem::take(&mut self.changes).apply(&self.opened.kv)
    }

    /// Every row of a namespace. What the database cannot give, a repair cannot bring back: it ends there.
    fn rows(&self, namespace: u8, mut row: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        for found in self.opened.kv.scan(&[namespace], Some(&[namespace + 1])) {
            let (key, value) = found?;
            row(&key, &value)?;
        }
        Ok(())
    }

    /// All rows of a namespace at once, where there are few.
    fn all(&self, namespace: u8) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut all = Vec::new();
        self.rows(namespace, |key, value| {
            all.push((key.to_vec(), value.to_vec()));
            Ok(())
        })?;
        Ok(all)
    }

    /// A row that is of no use goes.
    fn drop_row(&mut self, key: &[u8], what: &str) {
        self.changes.delete(key);
        self.report.repaired(what);
    }
}
