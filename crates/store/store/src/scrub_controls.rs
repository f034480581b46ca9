//! User controls of the scrub of a mounted store.

use crate::Result;
use crate::format::key;
use crate::inner::Inner;
use crate::metadata_damage::or_name;
use crate::scrubber::ScrubStatus;
use crate::store::Store;
use kv::{Batch, Durability};

impl Store {
    /// Scrubs all metadata now and, if `deep`, all data, resuming the last pass. `goes` is called before each piece
    /// with its bytes; if it returns false, the scrub ends and the result is false.
    pub fn scrub(&self, deep: bool, mut goes: impl FnMut(u64) -> bool) -> Result<bool> {
        self.inner.check_writable()?;
        self.inner.release_scrub(|| ())?;
        self.inner.scrub(deep, &mut goes)
    }

    /// Requests a pass from the scrub's thread, for a store mounted with `background`.
    pub fn scrub_start(&self, deep: bool) -> Result<()> {
        self.inner.check_writable()?;
        self.inner
            .release_scrub(|| self.inner.scrubber.request(deep))
    }

    /// Ends the current pass after the piece that is being read. It is resumed on request, or when the next pass is
    /// due, counted from now; this holds in later mounts too, unless an error is returned.
    pub fn scrub_stop(&self) -> Result<()> {
        let _alone = self.inner.scrubber.changing.lock();
        let now = self.inner.runtime.unix_micros().max(1);
        self.inner.scrubber.stop(now);
        self.inner.check_writable()?;
        self.inner
            .set_scrub_stopped(|batch, key| batch.put(key, &now.to_le_bytes()))
    }

    /// Writes rows that a crash has left in no segment summary to one; a store mounted with `background` does that by
    /// itself. `goes` is called before each piece with its bytes; if it returns false, this ends and the result is
    /// false. Until it has completed, a loss of all metadata also loses the objects that were put last before the
    /// crash.
    pub fn copy_uncopied(&self, mut goes: impl FnMut(u64) -> bool) -> Result<bool> {
        self.inner.check_writable()?;
        self.inner.copy_uncopied(&mut goes)
    }

    /// The scrub's status.
    pub fn scrub_status(&self) -> Result<ScrubStatus> {
        Ok(self.inner.look_at_scrub()?.0)
    }
}

impl Inner {
    /// Takes a stop back and starts; another stop comes before both or after both.
    fn release_scrub(&self, start: impl FnOnce()) -> Result<()> {
        let _alone = self.scrubber.changing.lock();
        if self.scrubber.status().stopped_micros.is_some() {
            self.set_scrub_stopped(|batch, key| batch.delete(key))?;
            self.scrubber.release();
        }
        start();
        Ok(())
    }

    fn set_scrub_stopped(&self, change: impl FnOnce(&mut Batch, &[u8])) -> Result<()> {
        let mut batch = Batch::default();
        change(&mut batch, key::SUPER_SCRUB_STOPPED);
        self.write_rows(&batch, Durability::Synced)
    }

    /// The scrub's status, and descriptions of damaged records, whose contents are left out of it.
    pub(crate) fn look_at_scrub(&self) -> Result<(ScrubStatus, Vec<String>)> {
        // Read before the record, so that a status that is not running comes with the final position.
        let mut status = self.scrubber.status();
        let mut damage = self.metadata_damage();
        let record = or_name(self.scrub_record(), &mut damage)?;
        let some = |micros: u64| Some(micros).filter(|micros| *micros > 0);
        status.began_micros = some(record.began_micros);
        status.metadata_micros = some(record.metadata_micros);
        status.data_micros = some(record.data_micros);
        // A pass that has ended since the stop was the next one.
        status.stopped_micros = status
            .stopped_micros
            .filter(|at| !status.running && *at > record.data_micros);
        if !status.running {
            status.bytes_read = record.bytes_read;
        }
        // Live bytes count whole blocks, and data written meanwhile belongs to the next pass.
        status.bytes_all = self.freelist.live().max(status.bytes_read);
        let counted = self.fs.statistics();
        status.mended_at_mount = counted.mended_at_mount;
        status.copies_repaired = counted.copies_repaired;
        status.damaged_places = or_name(self.live_damage(), &mut damage)?;
        status.metadata_lost = damage.len() as u64;
        Ok((status, damage))
    }
}
