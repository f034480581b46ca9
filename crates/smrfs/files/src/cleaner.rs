//! Cleaning: live data of a band moves to another one, and the band is reset; or, on a Caveat-Scriptor drive, live
//! blocks of a part move away so that its free extents become one. A policy chooses the victim.

use crate::core::{Core, MAX_PIECE};
use crate::error::{Error, Result};
use crate::placement::{Stream, Victim};
use zone_alloc::Pressure;

/// What became of a piece of a victim's live data.
enum Piece {
    Moved,
    /// The victim has no live data any more.
    None,
    /// It cannot be read.
    Left,
}

impl Core {
    /// Cleans one victim: a band, or a part of a Caveat-Scriptor drive of the size of its reserve. `false` if nothing
    /// was gained, and nothing will be. Afterwards all changes are durable, and the victim's space is free unless a part of
    /// it cannot be read: it is left then, and the next call takes another.
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
        let is_left = loop {
            match self.move_piece(&victim)? {
                Piece::Moved => has_moved = true,
                Piece::None => break false,
                Piece::Left => break true,
            }
        };
        self.commit()?;
        let goes_on = self.space.cleaned(&victim, has_moved);
        self.counts.cleaned_zones += u64::from(goes_on && !is_left);
        Ok(goes_on)
    }

    /// Moves one piece of the victim's live data.
    fn move_piece(&mut self, victim: &Victim) -> Result<Piece> {
        let (zone, within) = (victim.zone, &victim.blocks);
        let holding = self.state.holding(zone).ok_or(Error::NotFound)?;
        let before = holding.owners.range(..within.start).next_back();
        let before = before.filter(|(start, owner)| *start + owner.blocks > within.start);
        let next = before.or_else(|| holding.owners.range(within.clone()).next());
        let Some((start, owner)) = next else {
            return Ok(Piece::None);
        };
        // The part of the extent that lies in the victim.
        let offset = (*start).max(within.start);
        let mut owner = *owner;
        owner.block += u64::from(offset - start);
        owner.blocks = (start + owner.blocks).min(within.end) - offset;
        if self.log.shape().is_whole && self.write_whole(owner.ino, Stream::Moved)? {
            self.counts.moved_bytes += self.map(owner.ino)?.blocks() * self.block as u64;
            return Ok(Piece::Moved);
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
            return Ok(Piece::Left);
        }
        let blocks: Vec<u64> = (owner.block..owner.block + count as u64).collect();
        self.place(owner.ino, &blocks, &data, &sums, Stream::Moved, false)?;
        self.counts.moved_bytes += data.len() as u64;
        Ok(Piece::Moved)
    }
}
