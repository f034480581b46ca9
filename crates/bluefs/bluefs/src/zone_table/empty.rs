//! Steps of zones without data: from the pool to a writer or to the journal, and back.

use super::stage::{Content, Opened, Stage};
use super::table::ZoneTable;
use crate::Result;
use crate::slot::Slot;
use std::sync::Arc;
use zone::ZoneId;

/// An empty zone that was set aside for the journal: it is used there or put back.
#[must_use]
#[derive(Debug)]
pub(crate) struct SetAside {
    pub zone: ZoneId,
    from: Stage,
}

impl ZoneTable {
    /// At mount: a zone of the superblocks, the journal, or its spare zone.
    pub fn claim_metadata(&mut self, zone: ZoneId) -> Result<()> {
        self.step(zone, "claimed for metadata", |stage| match stage {
            Stage::Foreign | Stage::Metadata => Some(Stage::Metadata),
            _ => None,
        })
        .map(drop)
    }

    /// Takes a zone from the pool; the operation for it is recorded in `batch`.
    pub fn take(&mut self, zone: ZoneId, batch: u64) -> Result<()> {
        self.step(zone, "taken", |stage| match stage {
            Stage::Foreign => Some(Stage::Taken { batch }),
            _ => None,
        })
        .map(drop)
    }

    /// Batches up to `number` are in the journal; zones that they take are usable once flush number `flush` is done.
    pub fn is_in_journal(&mut self, number: u64, flush: u64) {
        self.pass(|_, stage| match stage {
            Stage::Taken { batch } if *batch <= number => Some(Stage::Ready { after: flush }),
            _ => None,
        });
    }

    /// Sets a zone aside for the journal: one of the pool, or one that is taken or ready.
    pub fn set_aside(&mut self, zone: ZoneId) -> Result<SetAside> {
        let from = self.step(zone, "set aside for the journal", |stage| match stage {
            Stage::Foreign | Stage::Taken { .. } | Stage::Ready { .. } => Some(Stage::Metadata),
            _ => None,
        })?;
        Ok(SetAside { zone, from })
    }

    /// Puts a zone back that the journal did not need. True if it now belongs to the pool.
    pub fn put_back(&mut self, SetAside { zone, from }: SetAside) -> bool {
        self.set(zone, from);
        self.is_foreign(zone)
    }

    /// Opens a ready zone for a first writer; `finished` is the number of the last finished flush.
    pub fn open(&mut self, slot: Arc<Slot>, finished: u64) -> Result<()> {
        self.step(slot.zone, "opened", |stage| {
            let opened = || Stage::Open(Opened::new(slot, 1, Content::default()));
            stage.is_usable(finished).then(opened)
        })
        .map(drop)
    }

    /// Freed zones whose batches are durable.
    pub fn freed(&self, durable: u64) -> impl Iterator<Item = ZoneId> {
        let is_due =
            move |stage: &Stage| matches!(stage, Stage::Freed { batch, .. } if *batch <= durable);
        let due = self.passing().filter(move |(_, stage)| is_due(stage));
        due.map(|(zone, _)| zone)
    }

    /// Begins the resets of freed zones whose batches are durable and that `which` selects, and returns them.
    pub fn begin_resets(&mut self, durable: u64, which: impl Fn(ZoneId) -> bool) -> Vec<ZoneId> {
        self.pass(|zone, stage| match *stage {
            Stage::Freed { batch, active } if batch <= durable && which(zone) => {
                Some(Stage::Resetting { active })
            }
            _ => None,
        })
    }

    /// A zone was reset; the reset is durable with flush number `next_flush`.
    pub fn was_reset(&mut self, zone: ZoneId, next_flush: u64) -> Result<()> {
        self.step(zone, "ready", |stage| {
            let after = next_flush;
            stage.may_be_reset().then_some(Stage::Ready { after })
        })
        .map(drop)
    }

    /// The reset of a zone failed; `active` tells whether it holds an active resource.
    pub fn was_not_reset(&mut self, zone: ZoneId, active: bool) -> Result<()> {
        self.step(zone, "left as it is", |stage| {
            stage.may_be_reset().then_some(Stage::Unreset { active })
        })
        .map(drop)
    }

    /// Begins another reset of a zone whose reset failed: the next one after `last`, or the first one. Also returns
    /// whether the zone is active.
    pub fn begin_reset_again(&mut self, last: Option<ZoneId>) -> Option<(ZoneId, bool)> {
        let unreset = |(zone, stage): (ZoneId, &Stage)| match *stage {
            Stage::Unreset { active } => Some((zone, active)),
            _ => None,
        };
        let unreset = self.passing().filter_map(unreset);
        let (zone, active) = unreset.min_by_key(|(zone, _)| (Some(*zone) <= last, *zone))?;
        self.set(zone, Stage::Resetting { active });
        Some((zone, active))
    }

    /// Removes a zone from the table that holds nothing of the file system any more.
    pub fn forget(&mut self, zone: ZoneId) -> Result<()> {
        self.step(zone, "forgotten", |stage| {
            stage.may_be_reset().then_some(Stage::Foreign)
        })
        .map(drop)
    }

    /// Gives a ready zone back to the pool once `batch` is durable.
    pub fn give(&mut self, zone: ZoneId, batch: u64) -> Result<()> {
        self.step(zone, "given back", |stage| {
            stage.is_ready().then_some(Stage::Leaving { batch })
        })
        .map(drop)
    }

    /// Returns the zones that now belong to the pool, because batches up to `durable` are durable.
    pub fn leave(&mut self, durable: u64) -> Vec<ZoneId> {
        self.pass(|_, stage| match stage {
            Stage::Leaving { batch } if *batch <= durable => Some(Stage::Foreign),
            _ => None,
        })
    }
}
