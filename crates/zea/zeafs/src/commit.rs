//! Making durable what has changed: a frame says it, behind the extents that it names, and one flush covers both.
//! Zones in which nothing is live any more are reset behind that.

use crate::error::Result;
use crate::inner::Inner;
use crate::shared::Shared;
use runtime::sync::MutexGuard;

impl Shared {
    /// Makes all changes durable. Others go on during the flush, and share it with those who come in time.
    pub fn commit(inner: &mut MutexGuard<'_, Inner>) -> Result<()> {
        let covered_by = inner.write_frame()?;
        let (device, flusher) = (inner.space.device.clone(), inner.space.flusher.clone());
        let flushed = MutexGuard::unlocked(inner, || flusher.reach(covered_by, || device.flush()));
        inner.go_on(flushed.map_err(Into::into))?;
        inner.reset_dead()
    }
}

impl Inner {
    /// The same, with nobody else at work.
    pub fn commit(&mut self) -> Result<()> {
        let covered_by = self.write_frame()?;
        let flushed = self.space.reach(covered_by);
        self.go_on(flushed)?;
        self.reset_dead()
    }

    /// What the drive has of a frame that failed nobody knows, so no other may come behind it.
    fn go_on<T>(&mut self, written: Result<T>) -> Result<T> {
        if let Err(error) = &written
            && self.stopped.is_none()
        {
            self.stopped = Some(error.to_string());
        }
        written
    }

    /// Writes what has changed as a frame; answers the flush that makes it durable, and all before it.
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
            self.gather()?;
        }
        self.checkpoint()
    }

    /// A new checkpoint, in the other area, behind all that it names.
    pub fn checkpoint(&mut self) -> Result<()> {
        let (device, flusher) = (self.space.device.clone(), self.space.flusher.clone());
        self.space.flush()?;
        self.log
            .checkpoint(&*device, &flusher, &self.map.checkpoint())?;
        self.pending.clear();
        Ok(())
    }

    /// Makes a frame without changes durable: with it, all before it are known to have been. Without room for it, the last of
    /// them are looked at by the next mount.
    pub fn seal(&mut self) -> Result<()> {
        let (device, flusher) = (self.space.device.clone(), self.space.flusher.clone());
        let sealed = self.log.append(&*device, &flusher, &[]);
        let sealed = sealed.and_then(|_| self.space.flush());
        self.go_on(sealed)
    }

    /// Resets zones in which nothing is live any more, since durable frames say so.
    fn reset_dead(&mut self) -> Result<()> {
        // Who comes from a flush may find the file system unmounted, and the zones another's.
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
