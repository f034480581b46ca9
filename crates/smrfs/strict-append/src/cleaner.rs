//! Cleaning: what is live in a band moves to another one, and the band is reset. Which band is a policy's choice.

use crate::bands::Stream;
use crate::core::{Core, MAX_PIECE};
use crate::error::{Error, Result};
use zone::ZoneId;
use zone_alloc::{Candidate, CleaningPolicy, Pressure, ZoneView};

impl Core {
    /// The next band to clean, if one is worth it.
    pub fn victim(&self, pressure: Pressure) -> Option<Candidate> {
        let block = self.block as u64;
        let zones: Vec<Candidate> = self
            .bands
            .cleanable()
            .filter_map(|(zone, written, filled_at)| {
                let live = self.state.holding(zone)?.live;
                (live > 0).then_some(Candidate {
                    zone: ZoneId(zone),
                    live: live * block,
                    written: u64::from(written) * block,
                    filled_at,
                })
            })
            .collect();
        let view = ZoneView {
            zones: &zones,
            now: self.bands.now(),
        };
        let policy: &dyn CleaningPolicy = self.options.policy.get();
        policy.choose(view, pressure)
    }

    /// Cleans one band; `false` if none is worth it. Afterwards everything is durable, and the band is free.
    pub fn clean(&mut self, pressure: Pressure) -> Result<bool> {
        self.commit()?;
        let Some(victim) = self.victim(pressure) else {
            return Ok(false);
        };
        while self.move_piece(victim.zone.0)? {}
        self.commit()?;
        self.counts.cleaned_zones += 1;
        Ok(true)
    }

    /// Moves one piece of what is live in a band; `false` if nothing is.
    fn move_piece(&mut self, zone: u32) -> Result<bool> {
        let holding = self.state.holding(zone).ok_or(Error::NotFound)?;
        let Some((offset, owner)) = holding.owners.first_key_value() else {
            return Ok(false);
        };
        let (offset, owner) = (*offset, *owner);
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
        self.read_raw(zone, offset, &mut data)?;
        let blocks: Vec<u64> = (owner.block..owner.block + count as u64).collect();
        self.place(owner.ino, &blocks, &data, Some(&sums), Stream::Moved, false)?;
        self.counts.moved_bytes += data.len() as u64;
        Ok(true)
    }
}
