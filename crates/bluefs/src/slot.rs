//! Open zones for data: which one a writer gets. The choice is a pure function of what is open.
//!
//! A writer has a zone of its own as long as the drive's active zones allow; otherwise writers of
//! the same family share one. Logs and plain data never interleave in a zone, for a run of log
//! records ends at the first thing that is none; one behind the other is fine.

use parking_lot::Mutex;
use std::sync::Arc;
use zone::ZoneId;

/// Files that may be expected to die together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Class {
    /// Write-ahead logs.
    Wal,
    /// Manifests.
    Manifest,
    /// Small files and tables of unknown or short life.
    Short,
    /// Tables of the upper levels.
    Medium,
    /// Tables of the middle.
    Long,
    /// Tables of the last levels.
    Extreme,
    /// A file that fills a zone by itself.
    Whole,
}

impl Class {
    pub fn is_log(self) -> bool {
        matches!(self, Self::Wal | Self::Manifest)
    }
}

/// A zone that data is appended to.
#[derive(Debug)]
pub(crate) struct Slot {
    pub zone: ZoneId,
    pub class: Class,
    pub capacity: u64,
    /// Bytes used; held over a write, which keeps the order in the zone.
    pub used: Mutex<u64>,
}

/// What is known of an open zone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub class: Class,
    pub writers: u32,
    pub room: u64,
}

/// What a writer gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Choice {
    /// The open zone at this position.
    Open(usize),
    /// A new zone.
    New,
    /// Nothing fits until space is made.
    Nothing,
}

/// Chooses a zone for a writer of `class`. `budget` is how many zones may be open at once, at
/// least two; `can_take` whether there is a free one.
pub(crate) fn choose(class: Class, open: &[Open], budget: usize, can_take: bool) -> Choice {
    let usable = || open.iter().enumerate().filter(|(_, o)| o.room > 0);
    let idle = |fits: &dyn Fn(&Open) -> bool| {
        let found = usable()
            .filter(|(_, o)| o.writers == 0 && fits(o))
            .max_by_key(|(_, o)| o.room);
        found.map(|(index, _)| Choice::Open(index))
    };
    let same_family = |o: &Open| o.class.is_log() == class.is_log();
    // The other family always finds a place: one zone of the budget is kept for it. A full zone
    // whose writer has not noticed yet is no active one any more.
    let family = usable().filter(|(_, o)| same_family(o)).count();
    let may_take = can_take && usable().count() < budget && family + 1 < budget;
    let new = || may_take.then_some(Choice::New);
    let first = if class == Class::Whole {
        new()
    } else {
        idle(&|o| o.class == class).or_else(new)
    };
    first
        .or_else(|| idle(&same_family))
        .or_else(|| {
            let shared = usable()
                .filter(|(_, o)| same_family(o))
                .min_by_key(|(_, o)| o.writers);
            shared.map(|(index, _)| Choice::Open(index))
        })
        .or_else(|| idle(&|_| true))
        .unwrap_or(Choice::Nothing)
}

/// A slot and how many writers hold it.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub slot: Arc<Slot>,
    pub writers: u32,
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

    #[test]
    fn a_writer_gets_a_zone_of_its_own_while_there_are_some() {
        let o = [open(Class::Medium, 1), open(Class::Wal, 1)];
        assert_eq!(choose(Class::Medium, &o, 4, true), Choice::New);
        assert_eq!(choose(Class::Medium, &o, 2, true), Choice::Open(0));
    }

    #[test]
    fn a_finished_writers_zone_is_passed_on_within_its_class() {
        let o = [open(Class::Long, 0), open(Class::Medium, 0)];
        assert_eq!(choose(Class::Medium, &o, 9, true), Choice::Open(1));
        assert_eq!(choose(Class::Short, &o, 9, true), Choice::New);
        assert_eq!(choose(Class::Short, &o, 2, true), Choice::Open(1));
        assert_eq!(choose(Class::Whole, &o, 9, true), Choice::New);
    }

    #[test]
    fn one_place_is_kept_for_the_other_family() {
        let o = [open(Class::Medium, 1)];
        assert_eq!(choose(Class::Medium, &o, 2, true), Choice::Open(0));
        assert_eq!(choose(Class::Wal, &o, 2, true), Choice::New);
        let o = [open(Class::Wal, 1)];
        assert_eq!(choose(Class::Manifest, &o, 2, true), Choice::Open(0));
    }

    #[test]
    fn a_family_whose_zone_is_full_finds_its_place_again() {
        let full = Open {
            room: 0,
            ..open(Class::Short, 1)
        };
        let o = [open(Class::Wal, 1), full];
        assert_eq!(choose(Class::Wal, &o, 2, true), Choice::Open(0));
        assert_eq!(choose(Class::Short, &o, 2, true), Choice::New);
    }

    #[test]
    fn logs_and_plain_data_share_a_zone_only_one_behind_the_other() {
        assert_eq!(
            choose(Class::Wal, &[open(Class::Short, 1)], 9, false),
            Choice::Nothing
        );
        assert_eq!(
            choose(Class::Wal, &[open(Class::Short, 0)], 9, false),
            Choice::Open(0)
        );
    }
}
