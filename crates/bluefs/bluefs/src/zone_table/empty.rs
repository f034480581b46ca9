//! Steps of zones without data: from the pool to a writer or into the journal, and back.

use super::stage::{Content, Opened, Stage};
use super::table::ZoneTable;
use crate::Result;
use crate::slot::Slot;
use std::sync::Arc;
use zone::ZoneId;

/// An empty zone on its way into the journal: it comes to be in it, or is put back.
#[must_use]
#[derive(Debug)]
pub(crate) struct SetAside {
    pub zone: ZoneId,
    from: Stage,
}

impl ZoneTable {
    /// Mount: superblocks, the journal and its spare zone.
    pub fn claim_metadata(&mut self, zone: ZoneId) -> Result<()> {
        self.step(zone, "claimed for metadata", |stage| match stage {
            Stage::Foreign | Stage::Metadata => Some(Stage::Metadata),
            _ => None,
        })
        .map(drop)
    }

    /// A zone of the pool that what is recorded in `batch` takes.
    pub fn take(&mut self, zone: ZoneId, batch: u64) -> Result<()> {
        self.step(zone, "taken", |stage| match stage {
            Stage::Foreign => Some(Stage::Taken { batch }),
            _ => None,
        })
        .map(drop)
    }

    /// Batches up to this one are in the journal. Zones that they take are usable after `flush`.
    pub fn is_in_journal(&mut self, number: u64, flush: u64) {
        self.pass(|stage| match stage {
            Stage::Taken { batch } if *batch <= number => Some(Stage::Ready { after: flush }),
            _ => None,
        });
    }

    /// For the journal: a zone of the pool, or one that is taken or ready.
    pub fn set_aside(&mut self, zone: ZoneId) -> Result<SetAside> {
        let from = self.step(zone, "set aside for the journal", |stage| match stage {
            Stage::Foreign | Stage::Taken { .. } | Stage::Ready { .. } => Some(Stage::Metadata),
            _ => None,
        })?;
        Ok(SetAside { zone, from })
    }

    /// The journal did not need it. True if it is the pool's.
    pub fn put_back(&mut self, SetAside { zone, from }: SetAside) -> bool {
        self.set(zone, from);
        self.is_foreign(zone)
    }

    /// Somebody writes to a zone that is ready.
    pub fn open(&mut self, slot: Arc<Slot>, finished: u64) -> Result<()> {
        self.step(slot.zone, "opened", |stage| {
            let opened = || Stage::Open(Opened::new(slot, 1, Content::default()));
            stage.is_usable(finished).then(opened)
        })
        .map(drop)
    }

    /// Zones whose batches are durable are being reset from now on.
    pub fn begin_resets(&mut self, durable: u64) -> Vec<ZoneId> {
        self.pass(|stage| match *stage {
            Stage::Freed { batch, active } if batch <= durable => Some(Stage::Resetting { active }),
            _ => None,
        })
    }

    /// A reset that succeeded, durable with the next flush, of a zone that is ours.
    pub fn was_reset(&mut self, zone: ZoneId, next_flush: u64) -> Result<()> {
        self.step(zone, "ready", |stage| {
            let after = next_flush;
            stage.may_be_reset().then_some(Stage::Ready { after })
        })
        .map(drop)
    }

    /// A reset that failed, of a zone that is ours.
    pub fn was_not_reset(&mut self, zone: ZoneId, active: bool) -> Result<()> {
        self.step(zone, "left as it is", |stage| {
            stage.may_be_reset().then_some(Stage::Unreset { active })
        })
        .map(drop)
    }

    /// The next zone behind `last`, in a ring, whose reset has failed is being reset again from now on.
    pub fn begin_reset_again(&mut self, last: Option<ZoneId>) -> Option<ZoneId> {
        let unreset = |(zone, stage): (ZoneId, &Stage)| match *stage {
            Stage::Unreset { active } => Some((zone, active)),
            _ => None,
        };
        let unreset = self.passing().filter_map(unreset);
        let (zone, active) = unreset.min_by_key(|(zone, _)| (Some(*zone) <= last, *zone))?;
        self.set(zone, Stage::Resetting { active });
        Some(zone)
    }

    /// A zone that holds nothing of ours and has no place in the journal any more.
    pub fn forget(&mut self, zone: ZoneId) -> Result<()> {
        self.step(zone, "forgotten", |stage| {
            stage.may_be_reset().then_some(Stage::Foreign)
        })
        .map(drop)
    }

    /// What is recorded in `batch` gives it to the pool.
    pub fn give(&mut self, zone: ZoneId, batch: u64) -> Result<()> {
        self.step(zone, "given back", |stage| {
            stage.is_ready().then_some(Stage::Leaving { batch })
        })
        .map(drop)
    }

    /// Zones that are the pool's, now that batches up to this one are durable.
    pub fn leave(&mut self, durable: u64) -> Vec<ZoneId> {
        self.pass(|stage| match stage {
            Stage::Leaving { batch } if *batch <= durable => Some(Stage::Foreign),
            _ => None,
        })
    }
}
