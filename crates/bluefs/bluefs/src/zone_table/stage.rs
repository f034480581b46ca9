//! The stages of a zone's life, with the data of each.

use crate::format::operation::JournalOperation;
use crate::slot::Slot;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zone::ZoneAddress;

/// A stage of a zone's life; `active` fields tell whether the zone holds an active resource of the drive.
#[derive(Default, Debug)]
pub(crate) enum Stage {
    /// Not the file system's, or owned but not classified yet (during a mount).
    #[default]
    Foreign,
    /// A superblock ring, the journal, or its spare zone.
    Metadata,
    /// Empty, and the file system's once this batch is in the journal.
    Taken { batch: u64 },
    /// Empty, and the file system's. It may be written to once flush number `after` is done, which follows the zone's
    /// last reset and the frame that takes it.
    Ready { after: u64 },
    /// Data is appended to it.
    Open(Box<Opened>),
    /// It has live data and is not appended to.
    Holding(Content),
    /// Without live data. It is reset once this batch, which records that, is durable.
    Freed { batch: u64, active: bool },
    /// Being reset by a thread that does not hold the state.
    Resetting { active: bool },
    /// Its reset has failed although the drive reports it as writable; the reset is retried (`unreset.rs`).
    Unreset { active: bool },
    /// Returned to the pool once this batch, which records that, is durable.
    Leaving { batch: u64 },
}

/// Live data in a zone.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Content {
    /// Something in it cannot be read or moved, so it cannot be emptied.
    pub stuck: bool,
    /// Blocks of the extents. Records of logs are not counted, because a segment is registered once and then grows.
    pub live_blocks: u32,
}

/// An open zone with its writers.
#[derive(Debug)]
pub(crate) struct Opened {
    pub slot: Arc<Slot>,
    pub writers: u32,
    /// The written end of its log records that is recorded for a frame already.
    pub(super) told: u64,
    pub(super) content: Content,
}

impl Opened {
    pub(super) fn new(slot: Arc<Slot>, writers: u32, content: Content) -> Box<Self> {
        let told = 0;
        Box::new(Self {
            slot,
            writers,
            told,
            content,
        })
    }

    /// The written end of its log records, if that is not recorded yet; from now on it counts as recorded.
    pub(super) fn news(&mut self) -> Option<JournalOperation> {
        let written_end = self.slot.written_end.load(Ordering::Acquire);
        if written_end <= self.told {
            return None;
        }
        self.told = written_end;
        Some(JournalOperation::WrittenEnd {
            at: ZoneAddress::new(self.slot.zone, written_end),
            run_id: self.slot.run_id,
        })
    }
}

impl Stage {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Foreign => "not the file system's",
            Self::Metadata => "the journal's or a superblock's",
            Self::Taken { .. } => "taken",
            Self::Ready { .. } => "ready",
            Self::Open(_) => "open",
            Self::Holding(_) => "holding data",
            Self::Freed { .. } => "freed",
            Self::Resetting { .. } => "being reset",
            Self::Unreset { .. } => "not reset yet",
            Self::Leaving { .. } => "leaving",
        }
    }

    pub fn is_data(&self) -> bool {
        matches!(self, Self::Open(_) | Self::Holding(_))
    }

    pub(super) fn is_usable(&self, finished: u64) -> bool {
        matches!(self, Self::Ready { after } if *after <= finished)
    }

    /// Whether files can have it now or soon.
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Taken { .. } | Self::Ready { .. })
    }

    pub fn is_waiting_for_reset(&self) -> bool {
        matches!(self, Self::Freed { .. } | Self::Resetting { .. })
    }

    /// Whether it has no live data, and a reset is its next step. (Foreign: during a mount.)
    pub(super) fn may_be_reset(&self) -> bool {
        matches!(
            self,
            Self::Resetting { .. } | Self::Metadata | Self::Foreign
        )
    }

    /// Whether it holds an active resource of the drive until it is reset.
    pub fn is_active_until_reset(&self) -> bool {
        matches!(
            self,
            Self::Freed { active: true, .. }
                | Self::Resetting { active: true }
                | Self::Unreset { active: true }
        )
    }

    /// Whether the zone waits for a next step that no request for this zone triggers.
    pub(super) fn is_passing(&self) -> bool {
        let is_late = matches!(self, Self::Unreset { .. } | Self::Leaving { .. });
        self.is_ready() || self.is_waiting_for_reset() || is_late
    }
}
