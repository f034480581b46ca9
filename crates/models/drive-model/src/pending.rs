//! Where a power cut leaves the write pointers of sequential-write-preferred zones.
//!
//! The rule book moves a write pointer when a write arrives; the drive writes the blocks later, and in its own order. In
//! a zone that prefers sequential writes, a lost write therefore says nothing about the blocks after it: they may be
//! older, or whole already. After a power cut, the write pointer of such a zone is after the highest block that was
//! written since the last reset and is on the medium. So every write is remembered until it is whole there, together
//! with the write pointer that the zone had without it.

use crate::request::Tag;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use zone::ZoneId;

/// A write, or the part of it in one zone. All numbers are in blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct ZonePart {
    pub zone: ZoneId,
    /// First block of the part, from the start of the zone.
    pub first: u64,
    pub blocks: u64,
    /// Blocks of the request before the part.
    pub skipped: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Command {
    Write {
        tag: Tag,
        part: ZonePart,
    },
    /// A finish takes effect when all writes to its zone before it are whole.
    Finish {
        zone: ZoneId,
        /// Blocks of the zone.
        capacity: u64,
    },
}

/// What is known to be on the medium of a zone with pending commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Whole {
    /// The write pointer without the pending commands, in blocks from the start of the zone.
    pointer: u64,
    /// Number of pending commands.
    pending: u32,
}

/// The commands that may not be whole on the medium, in order of arrival; see the head of this file.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct PendingWrites {
    commands: VecDeque<Command>,
    zones: BTreeMap<ZoneId, Whole>,
}

impl PendingWrites {
    /// Adds a part of a write. `pointer` is the zone's write pointer before it, in blocks.
    pub fn write(&mut self, tag: Tag, part: ZonePart, pointer: u64) {
        let whole = Whole {
            pointer,
            pending: 0,
        };
        self.zones.entry(part.zone).or_insert(whole).pending += 1;
        self.commands.push_back(Command::Write { tag, part });
    }

    /// Adds a finish of a zone of `capacity` blocks.
    pub fn finish(&mut self, zone: ZoneId, capacity: u64) {
        if let Some(whole) = self.zones.get_mut(&zone) {
            whole.pending += 1;
            self.commands.push_back(Command::Finish { zone, capacity });
        }
    }

    /// Forgets the writes to a zone, which is empty from now on.
    pub fn reset(&mut self, zone: ZoneId) {
        if self.zones.remove(&zone).is_some() {
            self.commands.retain(|command| command.zone() != zone);
        }
    }

    /// Removes the oldest commands as far as they are whole. `reached` is the number of blocks of a write that are on the
    /// medium, counted from its first, or `None` if all of them are.
    pub fn settle(&mut self, reached: impl Fn(Tag) -> Option<u64>) {
        while let Some(command) = self.commands.front() {
            if matches!(command, Command::Write { tag, .. } if reached(*tag).is_some()) {
                return;
            }
            let zone = command.zone();
            if let Some(whole) = self.zones.get_mut(&zone) {
                whole.pointer = whole.pointer.max(command.end());
                whole.pending -= 1;
                if whole.pending == 0 {
                    self.zones.remove(&zone);
                }
            }
            self.commands.pop_front();
        }
    }

    /// Forgets all commands; returns the write pointers after a power cut of the zones that had any, in blocks. `reached`
    /// is that of [`settle`](Self::settle).
    pub fn power_cut(&mut self, reached: impl Fn(Tag) -> Option<u64>) -> Vec<(ZoneId, u64)> {
        let mut zones = std::mem::take(&mut self.zones);
        let mut with_losses = BTreeSet::new();
        for command in std::mem::take(&mut self.commands) {
            let zone = command.zone();
            let end = match command {
                Command::Write { tag, part } => match reached(tag) {
                    None => command.end(),
                    Some(blocks) => {
                        with_losses.insert(zone);
                        match blocks.saturating_sub(part.skipped).min(part.blocks) {
                            0 => continue,
                            here => part.first + here,
                        }
                    }
                },
                Command::Finish { .. } if with_losses.contains(&zone) => continue,
                Command::Finish { .. } => command.end(),
            };
            if let Some(whole) = zones.get_mut(&zone) {
                whole.pointer = whole.pointer.max(end);
            }
        }
        zones
            .into_iter()
            .map(|(zone, whole)| (zone, whole.pointer))
            .collect()
    }
}

impl Command {
    const fn zone(&self) -> ZoneId {
        match self {
            Self::Write { part, .. } => part.zone,
            Self::Finish { zone, .. } => *zone,
        }
    }

    /// The write pointer that the command leads to, unless it is higher already.
    const fn end(&self) -> u64 {
        match self {
            Self::Write { part, .. } => part.first + part.blocks,
            Self::Finish { capacity, .. } => *capacity,
        }
    }
}
