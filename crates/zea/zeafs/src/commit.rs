//! Making durable what has changed.

use crate::error::Result;
use crate::inner::Inner;

impl Inner {
    /// Makes all changes durable: first the extents, then the frame that names them, then that. Zones in which nothing is
    /// live any more are reset behind it.
    pub fn commit(&mut self) -> Result<()> {
        self.check()?;
        if !self.pending.is_empty()
            && let Err(error) = self.write_frame()
        {
            // What the drive has of it nobody knows, so no frame may come behind it.
            self.stopped = Some(error.to_string());
            return Err(error);
        }
        for piece in std::mem::take(&mut self.doomed) {
            self.space.drop_piece(&piece);
        }
        let dead = self.space.dead();
        self.space.reset(&dead)
    }

    fn write_frame(&mut self) -> Result<()> {
        let device = self.space.device.clone();
        device.flush()?;
        if self.log.append(&*device, &self.pending)? {
            device.flush()?;
            self.pending.clear();
            return Ok(());
        }
        if self.map.checkpoint().len() as u64 > self.log.room() / 2 {
            self.gather()?;
        }
        self.checkpoint()
    }

    /// A new checkpoint, in the other area.
    pub fn checkpoint(&mut self) -> Result<()> {
        let device = self.space.device.clone();
        device.flush()?;
        self.log.checkpoint(&*device, &self.map.checkpoint())?;
        self.pending.clear();
        Ok(())
    }
}
