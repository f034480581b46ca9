//! Makes changes durable: a frame after the extents that it names records them, and one flush covers both.
//! Zones without live data are reset after that flush.

use crate::error::Result;
use crate::inner::Inner;
use crate::shared::Shared;
use runtime::sync::MutexGuard;

impl Shared {
    /// Makes all changes durable. The lock is released during the flush, which is shared with other commits.
    pub fn commit(inner: &mut MutexGuard<'_, Inner>) -> Result<()> {
        let covered_by = inner.write_frame()?;
        let (device, flusher) = (inner.space.device.clone(), inner.space.flusher.clone());
        let flushed = MutexGuard::unlocked(inner, || flusher.reach(covered_by, || device.flush()));
        inner.go_on(flushed.map_err(Into::into))?;
        inner.reset_dead()
    }
}

impl Inner {
    /// As [`Shared::commit`], without releasing the lock.
    pub fn commit(&mut self) -> Result<()> {
        let covered_by = self.write_frame()?;
        let flushed = self.space.reach(covered_by);
        self.go_on(flushed)?;
        self.reset_dead()
    }

    /// Stops all changes if `written` is an error: it is unknown which part of a failed frame is on the drive,
    /// so no other frame may follow it.
    fn go_on<T>(&mut self, written: Result<T>) -> Result<T> {
        if let Err(error) = &written
            && self.stopped.is_none()
        {
            self.stopped = Some(error.to_string());
        }
        written
    }

    /// Writes the pending changes as a frame; returns the flush that makes it and everything before it durable.
    fn write_frame(&mut self) -> Result<u64> {
        self.check()?;
        if !self.pending.is_empty() {
            let written = self.append_frame();
            self.go_on(written)?;
        }
        let covered_by = self.log.covered_by();
        let doomed = std::mem::take(&mut self.doomed);
        self.leaving
            .extend(doomed.into_iter().map(|piece| (covered_by, piece)));
        Ok(covered_by)
    }

    fn append_frame(&mut self) -> Result<()> {
        let (device, flusher) = (self.space.device.clone(), self.space.flusher.clone());
        if self.log.append(&*device, &flusher, &self.pending)? {
            self.pending.clear();
            return Ok(());
        }
        if self.map.checkpoint().len() as u64 > self.log.room() / 2 {
            self.gather();
        }
        self.checkpoint()
    }

    /// Writes a checkpoint to the other area, after making all that it names durable.
    pub fn checkpoint(&mut self) -> Result<()> {
        let (device, flusher) = (self.space.device.clone(), self.space.flusher.clone());
        self.space.flush()?;
        let operations = self.map.checkpoint();
        self.metadata = operations.len() as u64;
        self.log.checkpoint(&*device, &flusher, &operations)?;
        self.pending.clear();
        Ok(())
    }

    /// Makes an empty frame durable, which records that all frames before it were durable. If there is no room
    /// for it, the next mount checks the last frames.
    pub fn seal(&mut self) -> Result<()> {
        let (device, flusher) = (self.space.device.clone(), self.space.flusher.clone());
        let sealed = self.log.append(&*device, &flusher, &[]);
        let sealed = sealed.and_then(|_| self.space.flush());
        self.go_on(sealed)
    }

    /// Resets zones without live data, as durable frames record.
    fn reset_dead(&mut self) -> Result<()> {
        // After a flush the file system may have been unmounted, and its zones may have another owner.
        if self.stopped.is_some() {
            return Ok(());
        }
        let finished = self.space.flusher.finished();
        while let Some((_, piece)) = self.leaving.pop_front_if(|(flush, _)| *flush <= finished) {
            self.space.drop_piece(&piece);
        }
        let dead = self.space.dead();
        self.space.reset(&dead)
    }
}
