//! Cleaning: live data of a band moves to another one, and the band is reset; or, on a Caveat-Scriptor drive, live
//! blocks of a part move away so that its free extents become one. A policy chooses the victim.

use crate::core::{Core, MAX_PIECE};
use crate::error::{Error, Result};
use crate::placement::{Stream, Victim};
use zone_alloc::Pressure;

impl Core {
    /// Cleans one victim: a band, or a part of a Caveat-Scriptor drive of the size of its reserve. `false` if nothing
    /// was gained. Afterwards all changes are durable, and the victim's space is free.
    pub fn clean(&mut self, pressure: Pressure) -> Result<bool> {
        self.commit()?;
        let freed = self.space.free_dead(&self.state)?;
        self.counts.cleaned_zones += freed;
        if freed > 0 {
            return Ok(true);
        }
        let victim = self
            .space
            .victim(&self.state, self.options.policy, pressure);
        let Some(victim) = victim else {
            return Ok(false);
        };
        self.space.begin_cleaning(&victim);
        let mut has_moved = false;
        while self.move_piece(&victim)? {
            has_moved = true;
        }
        self.commit()?;
        let has_gained = self.space.cleaned(&victim, has_moved);
        self.counts.cleaned_zones += u64::from(has_gained);
        Ok(has_gained)
    }

    /// Moves one piece of the victim's live data; `false` if none is left, or if a part of it cannot be read and
    /// is left.
    fn move_piece(&mut self, victim: &Victim) -> Result<bool> {
        let (zone, within) = (victim.zone, &victim.blocks);
        let holding = self.state.holding(zone).ok_or(Error::NotFound)?;
        let before = holding.owners.range(..within.start).next_back();
        let before = before.filter(|(start, owner)| *start + owner.blocks > within.start);
        let next = before.or_else(|| holding.owners.range(within.clone()).next());
        let Some((start, owner)) = next else {
            return Ok(false);
        };
        // The part of the extent that lies in the victim.
        let offset = (*start).max(within.start);
        let mut owner = *owner;
        owner.block += u64::from(offset - start);
        owner.blocks = (start + owner.blocks).min(within.end) - offset;
        if self.log.shape().is_whole && self.write_whole(owner.ino, Stream::Moved)? {
            self.counts.moved_bytes += self.map(owner.ino)?.blocks() * self.block as u64;
            return Ok(true);
        }
        let count = (owner.blocks as usize).min(MAX_PIECE / self.block);
        let (start, extent) = self
            .map(owner.ino)?
            .find(owner.block)
            .ok_or(Error::Invalid("an extent of a band has no file"))?;
        let skip = (owner.block - start) as usize;
        let sums = extent.sums[skip..skip + count].to_vec();
        let mut data = vec![0; count * self.block];
        if let Err(error) = self.read_raw(zone, offset, &mut data) {
            // It would be the next victim again, and no other would be cleaned.
            self.space.leave(zone, offset..offset + count as u32);
            tracing::warn!(zone, offset, %error, "what cannot be read cannot be cleaned, and is left as it is");
            return Ok(false);
        }
        let blocks: Vec<u64> = (owner.block..owner.block + count as u64).collect();
        self.place(owner.ino, &blocks, &data, &sums, Stream::Moved, false)?;
        self.counts.moved_bytes += data.len() as u64;
        Ok(true)
    }
}
