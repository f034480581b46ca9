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
        // What users write to has dead bytes too; what was moved is not moved again for its zone's end.
        self.inner.data.seal()?;
        self.inner.freelist.try_all_again();
        self.inner.cleaner.start();
        Ok(())
    }

    /// Stops the background cleaner behind what it is copying, and ends all jobs. Writers still clean what they
    /// need.
    pub fn clean_stop(&self) {
        self.inner.cleaner.stop();
    }

    /// Holds the background cleaner to something else from now on, until the next mount.
    pub fn clean_change(&self, change: CleanerChange) {
        self.inner.hold_cleaner_to(change);
    }

    /// Says whether it is this drive's turn in a cluster to clean what nobody waits for, in the place of what was said
    /// before. It ends by itself, with the mount at the latest.
    pub fn clean_turn(&self, turn: ClusterTurn) {
        self.inner.cleaner.take_turn(turn);
    }

    /// What the cleaner does and has done.
    pub fn clean_status(&self) -> CleanerStatus {
        self.inner.cleaner_status()
    }

    /// Cleans one zone now, at full speed; false if none that could be cleaned has dead bytes.
    pub fn clean_one(&self) -> Result<bool> {
        Ok(self.clean_step(self.clean_status().job)?.zone.is_some())
    }

    /// Cleans one zone for a job, at full speed, unless somebody has stopped the cleaner since the job began.
    pub fn clean_step(&self, job: CleaningJob) -> Result<CleaningStep> {
        self.inner.clean_step(job)
    }

    /// One round of what the background cleaner does, for a store that was mounted without threads; false
    /// if there was nothing to do.
    pub fn tend(&self) -> Result<bool> {
        let runtime = &self.inner.runtime;
        self.tend_with(&mut |moment| runtime.wait_until(moment))
    }

    /// The same for somebody who has something to do meanwhile: `waits` is called between any two pieces of
    /// I/O with the moment until which the pace has the cleaner wait, and asked again if it comes back
    /// earlier. It must not write to the store.
    pub fn tend_with(&self, waits: &mut dyn FnMut(Duration)) -> Result<bool> {
        self.inner.tend(waits)
    }

    /// Leaves the zones that data goes to at present, so that they can be cleaned too.
    pub fn seal_open_zones(&self) -> Result<()> {
        self.inner.check_writable()?;
        self.inner.data.seal()?;
        self.inner.moved.seal()?;
        Ok(())
    }
}
