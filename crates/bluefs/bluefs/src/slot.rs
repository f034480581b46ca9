//! Chooses an open zone for a writer. The choice is a pure function of the open zones.
//!
//! A writer has a zone of its own as long as the drive's active zones allow; otherwise writers of the same family share
//! one. One place each is kept for write-ahead logs, manifests and all other files: a manifest outlives many logs, and
//! a zone that both wrote to is never free. Logs and plain data never interleave in a zone, because a run of log
//! records ends at the first block that is no record. Plain data after the end of a log in the same zone, or the
//! reverse, is fine.

use crate::format::crc32c;
use runtime::sync::{Mutex, MutexGuard};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use zone::ZoneId;
use zone_alloc::{Ladder, Tenant};

/// Classes of files that are expected to be deleted at about the same time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Class {
    /// Write-ahead logs.
    Wal,
    /// Manifests.
    Manifest,
    /// Log records moved out of older zones.
    MovedLog,
    /// Small files and SSTs of unknown or short life.
    Short,
    /// SSTs of the upper levels.
    Medium,
    /// SSTs of the middle.
    Long,
    /// SSTs of the last levels.
    Extreme,
    /// Data moved out of mostly dead zones: it has outlived the data that was written with it.
    Moved,
}

impl Class {
    pub fn is_log(self) -> bool {
        matches!(self, Self::Wal | Self::Manifest | Self::MovedLog)
    }

    /// Whether a compaction is going to read the files soon: those of unknown, short or medium lifetime.
    pub fn is_read_soon(self) -> bool {
        matches!(self, Self::Short | Self::Medium)
    }

    /// Index in [`tenants`] of the tenant that a zone of this class counts for, if `budget` zones may be open.
    fn tenant(self, budget: usize) -> usize {
        match self {
            Self::Wal => 0,
            Self::Manifest => usize::from(has_place_for_manifest(budget)),
            Self::MovedLog => 3,
            _ => 2,
        }
    }
}

const fn has_place_for_manifest(budget: usize) -> bool {
    budget > 2
}

/// The users of open zones that are each guaranteed one if `budget` may be open: write-ahead logs and manifests, which
/// share one if only two may be open, and all other files except moved logs.
fn tenants(budget: usize) -> Ladder<4> {
    let manifest = u32::from(has_place_for_manifest(budget));
    Ladder([1, manifest, 1, 0].map(|guaranteed| Tenant::new(guaranteed, 0)))
}

/// An open zone that data is appended to.
#[derive(Debug)]
pub(crate) struct Slot {
    pub zone: ZoneId,
    pub class: Class,
    pub capacity: u64,
    /// Id in the log records written through this slot; no other run, in this or an earlier life of the zone, has it.
    pub run_id: u32,
    /// Bytes used. The lock is held during a write, which keeps writes to the zone in order.
    filling: Mutex<u64>,
    /// Copy of `filling` for threads that must not wait for the drive.
    used: AtomicU64,
    /// Zone offset where the last log record ends; 0 if there is none.
    pub written_end: AtomicU64,
    /// Zone offset where the run of an earlier slot ended, if no file has been written behind it.
    log_end: Option<u64>,
    known: Mutex<Known>,
}

impl Slot {
    /// `used` bytes at the front of the zone hold other data; `run` is unique within the epoch.
    pub fn new(zone: ZoneId, class: Class, capacity: u64, used: u64, epoch: u64, run: u64) -> Self {
        let mut run_id = [0; 16];
        run_id[..8].copy_from_slice(&epoch.to_le_bytes());
        run_id[8..].copy_from_slice(&run.to_le_bytes());
        Self {
            zone,
            class,
            capacity,
            run_id: crc32c(&run_id),
            filling: Mutex::new(used),
            used: AtomicU64::new(used),
            written_end: AtomicU64::new(0),
            log_end: None,
            known: Mutex::default(),
        }
    }

    /// A slot that goes on in the zone of `old`, in another run.
    pub fn behind(old: &Self, class: Class, epoch: u64, run: u64) -> Self {
        let used = old.used();
        let log_end = if old.class.is_log() {
            Some(used)
        } else {
            old.log_end
        };
        Self {
            log_end,
            ..Self::new(old.zone, class, old.capacity, used, epoch, run)
        }
    }

    /// Whether a file that is written from `used` on would be the first thing behind the last record of a log.
    pub fn is_behind_a_log(&self, used: u64) -> bool {
        self.log_end == Some(used)
    }

    /// Bytes used; during a write, those before it.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Acquire)
    }

    /// Locks the end of the zone for a write. Must not be called while holding the lock on the state.
    pub fn fill(&self) -> Filling<'_> {
        Filling {
            end: self.filling.lock(),
            used: &self.used,
        }
    }

    /// Zone offset up to which the slot's log records are durable. The argument is the flusher's window: the number of
    /// the next flush, and of the last one that has finished.
    pub fn durable(&self, (_, finished): (u64, u64)) -> u64 {
        self.known.lock().durable(finished)
    }

    /// Notes that a log record has been written that ends at zone offset `end`.
    pub fn wrote(&self, end: u64, (next, finished): (u64, u64)) {
        self.written_end.store(end, Ordering::Release);
        self.known.lock().wrote(end, next, finished);
    }
}

/// The locked end of a zone: bytes used. [`Slot::used`] returns the new value after the drop.
pub(crate) struct Filling<'a> {
    end: MutexGuard<'a, u64>,
    used: &'a AtomicU64,
}

impl Deref for Filling<'_> {
    type Target = u64;
    fn deref(&self) -> &u64 {
        &self.end
    }
}

impl DerefMut for Filling<'_> {
    fn deref_mut(&mut self) -> &mut u64 {
        &mut self.end
    }
}

impl Drop for Filling<'_> {
    fn drop(&mut self) {
        self.used.store(*self.end, Ordering::Release);
    }
}

/// The durable end of a run: `durable` now, and `then` once flush number `flush` has finished.
#[derive(Clone, Copy, Default, Debug)]
struct Known {
    durable: u64,
    flush: u64,
    then: u64,
}

impl Known {
    fn durable(&mut self, finished: u64) -> u64 {
        if self.flush <= finished {
            self.durable = self.then;
        }
        self.durable
    }

    fn wrote(&mut self, end: u64, next: u64, finished: u64) {
        self.durable(finished);
        // While a flush that covers `then` is pending, a later end waits for the flush after it.
        if self.flush == next || self.flush <= finished {
            (self.flush, self.then) = (next, end);
        }
    }
}

/// An open zone as [`choose`] sees it; `room` is the free bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub class: Class,
    pub writers: u32,
    pub room: u64,
}

/// A request of a writer for a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Want {
    pub class: Class,
    /// Bytes that will be written, as far as known; 0 if unknown.
    pub bytes: u64,
    /// `bytes` fill at least half a zone.
    pub is_large: bool,
}

impl Want {
    /// A zone for the rest of a file, which is expected to be `bytes` long.
    pub fn rest(class: Class, bytes: u64, least_capacity: u64) -> Self {
        Self {
            class,
            bytes,
            is_large: bytes >= least_capacity / 2,
        }
    }
}

impl From<Class> for Want {
    /// A request of unknown size.
    fn from(class: Class) -> Self {
        Self::rest(class, 0, u64::MAX)
    }
}

/// Result of [`choose`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Choice {
    /// The zone at this index of `open`.
    Open(usize),
    /// A new zone.
    New,
    /// Nothing fits until space is made.
    Nothing,
}

/// Idle open zones of a class that are left to small files; a large file continues in one only if there are more.
const LEFT_TO_SMALL: usize = 3;

/// Chooses a zone for a writer. `budget` is how many zones may be open at once, at least two;
/// `can_take` whether there is a free one.
///
/// An SST that fills zones begins in a new one, so that it shares none with others and leaves none half dead. A small
/// file, and the end of a large one, goes to the open zone of its class that it fills best. More partly filled zones
/// are left by ends of large files than are worth keeping, so some large files have to continue in them.
pub(crate) fn choose(want: Want, open: &[Open], budget: usize, can_take: bool) -> Choice {
    let class = want.class;
    let usable = || open.iter().enumerate().filter(|(_, o)| o.room > 0);
    // Prefers the smallest room that is sufficient, otherwise the largest.
    let fills = |o: &Open| match o.room {
        room if want.bytes > 0 && room >= want.bytes => (1, u64::MAX - room),
        room => (0, room),
    };
    let idle = |fits: &dyn Fn(&Open) -> bool| {
        let found = usable()
            .filter(|(_, o)| o.writers == 0 && fits(o))
            .max_by_key(|(_, o)| fills(o));
        found.map(|(index, _)| Choice::Open(index))
    };
    let same_class = |o: &Open| o.class == class;
    let same_family = |o: &Open| o.class.is_log() == class.is_log();
    // A full zone is no longer active, even if its writer has not noticed yet.
    let mut held = [0; 4];
    usable().for_each(|(_, o)| held[o.class.tenant(budget)] += 1);
    let kept_for_others = tenants(budget).owed_to_others(class.tenant(budget), held) as usize;
    // A family without any open zone takes precedence over zones kept for others: all logs may be in a zone of moved
    // logs, and then no SST would find a place until they end.
    let has_none = !usable().any(|(_, o)| same_family(o));
    let kept_for_others = if has_none { 0 } else { kept_for_others };
    let new = || (can_take && usable().count() + kept_for_others < budget).then_some(Choice::New);
    let shared = |fits: &dyn Fn(&Open) -> bool| {
        let found = usable()
            .filter(|(_, o)| fits(o))
            .min_by_key(|(_, o)| o.writers);
        found.map(|(index, _)| Choice::Open(index))
    };
    let ends = || usable().filter(|(_, o)| o.writers == 0 && same_class(o));
    let first = if want.is_large && ends().count() <= LEFT_TO_SMALL {
        new().or_else(|| idle(&same_class))
    } else {
        idle(&same_class).or_else(new)
    };
    let logs_of_one_kind = |o: &Open| class.is_log() && o.class == class;
    first
        .or_else(|| shared(&logs_of_one_kind))
        .or_else(|| idle(&same_family))
        .or_else(|| shared(&same_family))
        .or_else(|| idle(&|_| true))
        .unwrap_or(Choice::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn open(class: Class, writers: u32) -> Open {
        Open {
            class,
            writers,
            room: 1 << 20,
        }
    }

    const LARGE: Want = Want {
        class: Class::Long,
        bytes: 1 << 22,
        is_large: true,
    };

    #[test]
    fn a_writer_gets_a_zone_of_its_own_while_there_are_some() {
        let o = [open(Class::Medium, 1), open(Class::Wal, 1)];
        assert_eq!(choose(Class::Medium.into(), &o, 4, true), Choice::New);
        assert_eq!(choose(Class::Medium.into(), &o, 2, true), Choice::Open(0));
    }

    #[test]
    fn a_file_finds_a_zone_though_all_logs_are_in_one_of_moved_logs() {
        let logs = [open(Class::MovedLog, 2)];
        assert_eq!(choose(Class::Medium.into(), &logs, 3, true), Choice::New);
        assert_eq!(choose(Class::Medium.into(), &logs, 2, true), Choice::New);
        // The remaining place goes to the first that asks: a log continues in the zone of the other logs.
        let both = [open(Class::MovedLog, 2), open(Class::Medium, 1)];
        assert_eq!(choose(Class::Wal.into(), &both, 2, true), Choice::Open(0));
    }

    #[test]
    fn a_finished_writers_zone_is_passed_on_within_its_class() {
        let o = [open(Class::Long, 0), open(Class::Medium, 0)];
        assert_eq!(choose(Class::Medium.into(), &o, 9, true), Choice::Open(1));
        assert_eq!(choose(Class::Short.into(), &o, 9, true), Choice::New);
        assert_eq!(choose(Class::Short.into(), &o, 2, true), Choice::Open(1));
        assert_eq!(choose(LARGE, &o, 9, true), Choice::New);
    }

    #[test]
    fn what_is_large_begins_in_a_zone_of_its_own_and_its_end_fills_the_rest_of_another() {
        let with_room = |room| Open {
            room,
            ..open(Class::Long, 0)
        };
        let mut o = vec![with_room(900), with_room(300), with_room(500)];
        assert_eq!(choose(LARGE, &o, 9, true), Choice::New);
        assert_eq!(choose(LARGE, &o, 4, true), Choice::Open(0), "of its class");
        for (bytes, index) in [(200, 1), (400, 2), (1000, 0), (0, 0)] {
            let end = Want::rest(Class::Long, bytes, 1 << 20);
            assert_eq!(choose(end, &o, 9, true), Choice::Open(index), "{bytes}");
        }
        // Small files would never fill so many ends.
        o.push(with_room(700));
        assert_eq!(choose(LARGE, &o, 9, true), Choice::Open(0));
    }

    #[test]
    fn one_place_is_kept_for_the_other_family() {
        let o = [open(Class::Medium, 1)];
        assert_eq!(choose(Class::Medium.into(), &o, 2, true), Choice::Open(0));
        assert_eq!(choose(Class::Wal.into(), &o, 2, true), Choice::New);
        let o = [open(Class::Wal, 1)];
        assert_eq!(choose(Class::Manifest.into(), &o, 2, true), Choice::Open(0));
    }

    #[test]
    fn a_manifest_has_a_zone_apart_from_the_logs_that_come_and_go() {
        let mut o = vec![open(Class::Manifest, 1), open(Class::Wal, 1)];
        o.extend([open(Class::Long, 0); 4]);
        // Idle zones of other files must not push the second log to the manifest.
        assert_eq!(choose(Class::Wal.into(), &o, 6, true), Choice::Open(1));
        assert_ne!(choose(LARGE, &o[1..], 6, true), Choice::New);
        assert_eq!(
            choose(Class::Manifest.into(), &o[1..], 6, true),
            Choice::New
        );
        let o = [open(Class::Long, 1)];
        assert_eq!(choose(LARGE, &o, 3, true), Choice::Open(0));
        assert_eq!(choose(LARGE, &o, 4, true), Choice::New);
    }

    #[test]
    fn a_family_whose_zone_is_full_finds_its_place_again() {
        let full = Open {
            room: 0,
            ..open(Class::Short, 1)
        };
        let o = [open(Class::Wal, 1), full];
        assert_eq!(choose(Class::Wal.into(), &o, 2, true), Choice::Open(0));
        assert_eq!(choose(Class::Short.into(), &o, 2, true), Choice::New);
    }

    #[test]
    fn only_a_flush_that_began_behind_a_write_makes_it_durable() {
        let slot = Slot::new(ZoneId(1), Class::Wal, 100, 0, 1, 1);
        slot.wrote(10, (1, 0));
        slot.wrote(20, (1, 0));
        assert_eq!(slot.durable((2, 0)), 0, "the first flush has begun");
        slot.wrote(30, (2, 0));
        assert_eq!(
            slot.durable((3, 1)),
            20,
            "and is done, the second has begun"
        );
        slot.wrote(40, (3, 1));
        assert_eq!(slot.durable((4, 2)), 20);
        assert_eq!(slot.durable((4, 3)), 40);
    }

    #[test]
    fn logs_and_plain_data_share_a_zone_only_one_behind_the_other() {
        assert_eq!(
            choose(Class::Wal.into(), &[open(Class::Short, 1)], 9, false),
            Choice::Nothing
        );
        assert_eq!(
            choose(Class::Wal.into(), &[open(Class::Short, 0)], 9, false),
            Choice::Open(0)
        );
    }
}
