//! What a zone is to the file system, and what is known of it then.

use crate::format::operation::JournalOperation;
use crate::slot::Slot;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zone::ZoneAddress;

/// A stage of a zone's life.
#[derive(Default, Debug)]
pub(crate) enum Stage {
    /// Not ours, or owned and not looked at yet (during a mount).
    #[default]
    Foreign,
    /// A superblock ring, the journal, or its spare zone.
    Metadata,
    /// Empty, and ours for files once this batch is in the journal.
    Taken { batch: u64 },
    /// Empty and ours. It may be written to when this flush is done: it follows the zone's last reset
    /// and the frame that takes it.
    Ready { after: u64 },
    /// Data is appended to it.
    Open(Box<Opened>),
    /// It has live data and is not appended to.
    Holding(Content),
    /// Nothing in it is live. It is reset when this batch, which says so, is durable.
    Freed { batch: u64, active: bool },
    /// Being reset by somebody who does not hold the state.
    Resetting { active: bool },
    /// Its reset has failed, though the drive lets it be written. It is tried again (`unreset.rs`).
    Unreset { active: bool },
    /// It goes back to the pool when this batch, which says so, is durable.
    Leaving { batch: u64 },
}

/// What is live in a zone.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Content {
    /// Something in it cannot be read, so it cannot be emptied.
    pub stuck: bool,
    /// Blocks of the extents. Records of logs do not count: they are entered by the segment, while it
    /// grows.
    pub live_blocks: u32,
}

/// An open zone.
#[derive(Debug)]
pub(crate) struct Opened {
    pub slot: Arc<Slot>,
    pub writers: u32,
    /// The written end of its log records that is in a frame, or will be.
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

    /// How far the log records in it were written, if nobody was told yet.
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

    /// Whether files may have it now or soon.
    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Taken { .. } | Self::Ready { .. })
    }

    pub fn is_waiting_for_reset(&self) -> bool {
        matches!(self, Self::Freed { .. } | Self::Resetting { .. })
    }

    /// Whether nothing in it is live, and a reset is what comes next. (Foreign: during a mount.)
    pub(super) fn may_be_reset(&self) -> bool {
        matches!(
            self,
            Self::Resetting { .. } | Self::Metadata | Self::Foreign
        )
    }

    /// Whether it keeps an active resource of the drive until it is reset.
    pub fn is_active_until_reset(&self) -> bool {
        matches!(
            self,
            Self::Freed { active: true, .. }
                | Self::Resetting { active: true }
                | Self::Unreset { active: true }
        )
    }

    /// Whether something has to happen to it without anybody asking for this zone.
    pub(super) fn is_passing(&self) -> bool {
        let is_late = matches!(self, Self::Unreset { .. } | Self::Leaving { .. });
        self.is_ready() || self.is_waiting_for_reset() || is_late
    }
}
