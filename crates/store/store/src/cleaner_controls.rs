//! The cleaner of a mounted store, as its users control it.

use crate::Result;
use crate::cleaner::CleanerChange;
use crate::cleaner_status::CleanerStatus;
use crate::cleaning_job::{CleaningJob, CleaningStep};
use crate::cluster_turn::ClusterTurn;
use crate::store::Store;
use std::time::Duration;

impl Store {
    /// Asks the background cleaner to clean every zone that has dead bytes, and lets it start by
    /// itself from then on. Zones that are set aside are tried again.
    pub fn clean_start(&self) -> Result<()> {
        self.inner.check_writable()?;
        // Zones being written have dead bytes too; moved data is not moved again merely to fill its zone's tail.
        self.inner.data.seal()?;
        self.inner.freelist.try_all_again();
        self.inner.cleaner.start();
        Ok(())
    }

    /// Stops the background cleaner after the piece that it is copying, and ends all jobs. Writers still clean when
    /// they need a zone.
    pub fn clean_stop(&self) {
        self.inner.cleaner.stop();
    }

    /// Changes the background cleaner's settings until the next mount.
    pub fn clean_change(&self, change: CleanerChange) {
        self.inner.hold_cleaner_to(change);
    }

    /// Says whether it is this drive's turn in a cluster to clean ahead, and replaces the last such statement. It
    /// expires by itself, with the mount at the latest.
    pub fn clean_turn(&self, turn: ClusterTurn) {
        self.inner.cleaner.take_turn(turn);
    }

    /// Settings of the cleaner, its work at present, and its counters since the mount.
    pub fn clean_status(&self) -> CleanerStatus {
        self.inner.cleaner_status()
    }

    /// Cleans one zone now, at full speed; false if no zone that can be cleaned has dead bytes.
    pub fn clean_one(&self) -> Result<bool> {
        Ok(self.clean_step(self.clean_status().job)?.zone.is_some())
    }

    /// Cleans one zone for `job`, at full speed, unless the cleaner was stopped since the job began.
    pub fn clean_step(&self, job: CleaningJob) -> Result<CleaningStep> {
        self.inner.clean_step(job)
    }

    /// One round of what the background cleaner does, for a store that was mounted without threads; false
    /// if there was nothing to do.
    pub fn tend(&self) -> Result<bool> {
        let runtime = &self.inner.runtime;
        self.tend_with(&mut |moment| runtime.wait_until(moment))
    }

    /// Like [`Self::tend`], for a caller with other work: `waits` is called between any two pieces of I/O with the
    /// moment until which the pace makes the cleaner wait. If it returns earlier, it is called again. It must not write
    /// to the store.
    pub fn tend_with(&self, waits: &mut dyn FnMut(Duration)) -> Result<bool> {
        self.inner.tend(waits)
    }

    /// Finishes the zones that data is being appended to, so that they can be cleaned too.
    pub fn seal_open_zones(&self) -> Result<()> {
        self.inner.check_writable()?;
        self.inner.data.seal()?;
        self.inner.moved.seal()?;
        Ok(())
    }
}
