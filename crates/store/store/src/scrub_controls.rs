//! The scrub of a mounted store, as its users control it.

use crate::Result;
use crate::inner::Inner;
use crate::scrubber::ScrubStatus;
use crate::store::Store;

impl Store {
    /// Looks at all metadata now, and if `deep` at all data, in the place where the last pass was left. `goes` is asked in
    /// front of each piece of so many bytes, and ends it with false; the answer is false then.
    pub fn scrub(&self, deep: bool, mut goes: impl FnMut(u64) -> bool) -> Result<bool> {
        self.inner.scrub(deep, &mut goes)
    }

    /// Asks the thread of a store that was mounted with `background` to do that.
    pub fn scrub_start(&self, deep: bool) -> Result<()> {
        self.inner.check_writable()?;
        self.inner.scrubber.request(deep);
        Ok(())
    }

    /// Ends what is under way behind the piece in hand. It begins by itself no more until it is asked for.
    pub fn scrub_stop(&self) {
        self.inner.scrubber.stop();
    }

    /// Writes the rows that a crash has left in no segment summary to one; a store that was mounted with `background` does
    /// that by itself. `goes` is asked in front of each piece of so many bytes, and ends it with false; the answer is false
    /// then. Until this is through, a loss of all metadata takes the objects that were put last before the crash.
    pub fn copy_uncopied(&self, mut goes: impl FnMut(u64) -> bool) -> Result<bool> {
        self.inner.check_writable()?;
        self.inner.copy_uncopied(&mut goes)
    }

    /// What the scrub does and has done.
    pub fn scrub_status(&self) -> Result<ScrubStatus> {
        self.inner.scrub_status()
    }
}

impl Inner {
    pub(crate) fn scrub_status(&self) -> Result<ScrubStatus> {
        // In this order: who sees that it runs no more sees how far it came.
        let mut status = self.scrubber.status();
        let record = self.scrub_record()?;
        let some = |micros: u64| Some(micros).filter(|micros| *micros > 0);
        status.began_micros = some(record.began_micros);
        status.metadata_micros = some(record.metadata_micros);
        status.data_micros = some(record.data_micros);
        if !status.running {
            status.bytes_read = record.bytes_read;
        }
        // Blocks are whole there, and what is written meanwhile counts for the next pass.
        status.bytes_all = self.freelist.live().max(status.bytes_read);
        let counted = self.fs.statistics();
        status.mended_at_mount = counted.mended_at_mount;
        status.copies_repaired = counted.copies_repaired;
        status.metadata_lost = self.metadata_damage().len() as u64;
        status.damaged_places = self.live_damage()?;
        Ok(status)
    }
}
