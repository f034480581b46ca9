//! Whose turn it is to clean: the rule that the coordinator of a real cluster follows (`zonestore_swift/turns.py`),
//! which says why. `tests/swift/turns.json` has what both must say.
//!
//! Pure: of what drives tell and of what was said before follows what is said now.

use super::groups::Groups;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// A table of turns that nobody renewed for so many seconds is not believed by the drives' nodes.
pub const BELIEVED_SECONDS: f64 = 5.0;
/// So much later than it was said a turn may end at its drive.
const LATE_SECONDS: f64 = BELIEVED_SECONDS + 1.0;
/// A drive that nobody tells anything any more decides for itself after so many seconds.
pub const HOLD_SECONDS: f64 = 15.0;
/// A shift that is over sooner gives no turn any more.
const LEAST_SECONDS: f64 = 2.0;

/// How many drives have a turn at once; one at least.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum AtOnce {
    /// So many.
    Count(u32),
    /// So many of a hundred that tell something.
    Percent(f64),
}

impl AtOnce {
    /// Of so many drives.
    pub fn of(self, drives: usize) -> usize {
        let share = match self {
            Self::Count(count) => count as usize,
            Self::Percent(percent) => (drives as f64 * percent / 100.0) as usize,
        };
        share.max(1)
    }
}

/// What is the same for all.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rules {
    /// How long a turn is.
    pub turn_seconds: f64,
    /// A turn in which nothing was cleaned for so long ends.
    pub idle_seconds: f64,
    /// Who has waited longer goes first, and is not held up by drives that clean because they must.
    pub patience_seconds: f64,
    /// How many drives have a turn at once.
    pub at_once: AtOnce,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            turn_seconds: 30.0,
            idle_seconds: 3.0,
            patience_seconds: 300.0,
            at_once: AtOnce::Percent(20.0),
        }
    }
}

/// What is heard of a drive.
#[derive(Clone, Copy, PartialEq, Default, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Told {
    /// The last round that it had followed.
    pub followed: u64,
    /// There is a zone that it would clean.
    pub waits: bool,
    /// It has a zone in hand.
    pub cleans: bool,
    /// It cleans whatever is said, for hardly any zone is free.
    pub urgent: bool,
    /// Zones that may be filled until that is so.
    pub spare: u32,
    /// Seconds that it believes to be left of its turn.
    pub turn: f64,
}

/// A turn that goes on.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// When it was given.
    pub round: u64,
    /// Seconds.
    pub left: f64,
    /// Seconds that were waited for it.
    pub waited: f64,
    /// Seconds since anything was cleaned in it.
    pub idle: f64,
}

/// A turn that its drive may not have seen the end of.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ending {
    /// When that was said.
    pub round: u64,
    /// Seconds until it counts no more in any case.
    pub left: f64,
}

/// What is said.
#[derive(Clone, PartialEq, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// How often something was said.
    pub round: u64,
    /// Whose turn it is.
    pub turns: BTreeMap<u32, Turn>,
    /// Whose turn ends.
    pub ending: BTreeMap<u32, Ending>,
    /// How many seconds the others have waited.
    pub waiting: BTreeMap<u32, f64>,
    /// For so many seconds nobody is given a turn.
    pub quiet: f64,
    /// Whose turns they are.
    pub shift: u32,
    /// For how many seconds, if others wait.
    pub shift_left: f64,
}

impl Table {
    /// The seconds of a drive's turn, as they are told it.
    pub fn turn_of(&self, drive: u32) -> Option<f64> {
        self.turns.get(&drive).map(|turn| turn.left.floor())
    }
}

type Heard = BTreeMap<u32, Told>;

/// The next table: of what fresh news say, of the last table, and of the seconds since then.
pub fn decide(groups: &Groups, told: &Heard, before: &Table, elapsed: f64, rules: &Rules) -> Table {
    let followed = told.values().map(|told| told.followed).max();
    let round = 1 + before.round.max(followed.unwrap_or(0));
    let mut table = go_on(told, before, elapsed, round, rules);
    let has_place =
        |table: &Table, drive| table.turns.contains_key(drive) || table.ending.contains_key(drive);
    let unasked = told
        .iter()
        .filter(|(drive, told)| told.cleans && !has_place(&table, drive));
    let unasked: BTreeSet<u32> = unasked.map(|(drive, _)| *drive).collect();
    // Whoever is not heard of, or is on the way out, keeps its place.
    let kept = before.waiting.iter().filter(|(drive, _)| {
        table.ending.contains_key(drive) || !told.contains_key(drive) && groups.has(**drive)
    });
    let mut waiting: BTreeMap<u32, f64> = kept.map(|(drive, waited)| (*drive, *waited)).collect();
    for (drive, told) in told {
        if told.waits && !has_place(&table, drive) && !unasked.contains(drive) {
            let waited = before.waiting.get(drive).copied().unwrap_or(0.0);
            waiting.insert(*drive, waited + elapsed);
        }
    }
    for drive in giving_way(groups, told, &table, &unasked, rules) {
        if let Some(turn) = table.turns.remove(&drive) {
            let left = turn.left + LATE_SECONDS;
            table.ending.insert(drive, Ending { round, left });
            waiting.insert(drive, turn.waited);
        }
    }
    table.quiet = (before.quiet - elapsed).max(0.0);
    table.waiting = waiting;
    (table.shift, table.shift_left) = shift(groups, told, &table, before, elapsed, rules);
    if table.quiet == 0.0 {
        for drive in next(groups, told, &table, &unasked, rules) {
            let waited = table.waiting.remove(&drive).unwrap_or(0.0);
            // A shift ends for all of its drives at once.
            let left = if groups.has_shifts() && waited < rules.patience_seconds {
                rules.turn_seconds.min(table.shift_left)
            } else {
                rules.turn_seconds
            };
            let turn = Turn {
                round,
                left,
                waited,
                idle: 0.0,
            };
            table.turns.insert(drive, turn);
        }
    }
    table
}

/// Turns that go on, and those that end.
fn go_on(told: &Heard, before: &Table, elapsed: f64, round: u64, rules: &Rules) -> Table {
    let mut table = Table {
        round,
        ..Table::default()
    };
    for (drive, end) in &before.ending {
        let is_seen = told
            .get(drive)
            .is_some_and(|told| told.followed >= end.round && !told.cleans && told.turn <= 0.0);
        if end.left > elapsed && !is_seen {
            let left = end.left - elapsed;
            table.ending.insert(*drive, Ending { left, ..*end });
        }
    }
    for (drive, turn) in &before.turns {
        let left = turn.left - elapsed;
        let is_idle = told
            .get(drive)
            .is_some_and(|told| told.followed >= turn.round && !told.cleans);
        let idle = if is_idle { turn.idle + elapsed } else { 0.0 };
        if left <= 0.0 || idle >= rules.idle_seconds {
            let left = left.max(0.0) + LATE_SECONDS;
            table.ending.insert(*drive, Ending { round, left });
        } else {
            table.turns.insert(
                *drive,
                Turn {
                    left,
                    idle,
                    ..*turn
                },
            );
        }
    }
    for (drive, told) in told {
        // A table was lost, or another one was believed.
        let is_known = table.turns.contains_key(drive) || table.ending.contains_key(drive);
        if told.turn > 0.0 && !is_known {
            let left = told.turn + LATE_SECONDS;
            table.ending.insert(*drive, Ending { round, left });
        }
    }
    table
}

/// Whose turn ends because a drive cleans that must. Who has waited long goes on.
fn giving_way(
    groups: &Groups,
    told: &Heard,
    table: &Table,
    unasked: &BTreeSet<u32>,
    rules: &Rules,
) -> Vec<u32> {
    if unasked.is_empty() {
        return Vec::new();
    }
    let active = table.turns.keys().chain(table.ending.keys());
    let mut count = groups.count(active.chain(unasked));
    let forced = groups.count(unasked);
    let mut found = Vec::new();
    for (drive, turn) in &table.turns {
        let is_urgent = told.get(drive).is_some_and(|told| told.urgent);
        if is_urgent || turn.waited >= rules.patience_seconds {
            continue;
        }
        if groups.of(*drive).iter().any(|group| {
            let group = *group as usize;
            forced[group] > 0 && count[group] > groups.limit(group)
        }) {
            groups
                .of(*drive)
                .iter()
                .for_each(|group| count[*group as usize] -= 1);
            found.push(*drive);
        }
    }
    found
}

/// Which shift it is, and how long it goes on. It ends when its time is over, or nobody of it has anything to clean;
/// not while nobody else waits.
fn shift(
    groups: &Groups,
    told: &Heard,
    table: &Table,
    before: &Table,
    elapsed: f64,
    rules: &Rules,
) -> (u32, f64) {
    let Some(count) = groups.shift_count() else {
        return (0, 0.0);
    };
    let now = before.shift % count;
    let heard = table
        .waiting
        .keys()
        .filter(|drive| told.contains_key(drive));
    let wanting: BTreeSet<u32> = heard.filter_map(|drive| groups.shift_of(*drive)).collect();
    let later = wanting.iter().filter(|shift| **shift != now);
    let Some(next) = later.min_by_key(|shift| (**shift + count - now) % count) else {
        return (now, rules.turn_seconds);
    };
    let left = before.shift_left - elapsed;
    let mut at_it = table.turns.keys();
    if left > 0.0
        && (wanting.contains(&now) || at_it.any(|drive| groups.shift_of(*drive) == Some(now)))
    {
        return (now, left);
    }
    (*next, rules.turn_seconds)
}

/// Who has a turn from now on. Who has waited long goes first, the longest before the others; then who has the fewest
/// spare zones, of the shift that it is. A drive that has waited long and cannot go yet keeps the place free that it
/// needs.
fn next(
    groups: &Groups,
    told: &Heard,
    table: &Table,
    unasked: &BTreeSet<u32>,
    rules: &Rules,
) -> Vec<u32> {
    let is_aged = |waited: f64| waited >= rules.patience_seconds;
    let may_go = |drive: u32, waited: f64| {
        groups.shift_of(drive).is_none_or(|its| {
            is_aged(waited) || its == table.shift && table.shift_left >= LEAST_SECONDS
        })
    };
    let mut order: Vec<(u32, f64, u32)> = table
        .waiting
        .iter()
        .filter(|(drive, _)| !table.ending.contains_key(drive))
        .filter_map(|(drive, waited)| Some((*drive, *waited, told.get(drive)?.spare)))
        .filter(|(drive, waited, _)| may_go(*drive, *waited))
        .collect();
    order.sort_by(|a, b| {
        let key = |(drive, waited, spare): &(u32, f64, u32)| match is_aged(*waited) {
            true => (0, 0, *drive),
            false => (1, *spare, *drive),
        };
        let (one, other) = (key(a), key(b));
        let longest = b.1.total_cmp(&a.1);
        (one.0, one.1)
            .cmp(&(other.0, other.1))
            .then(longest)
            .then(one.2.cmp(&other.2))
    });
    if order.is_empty() {
        return Vec::new();
    }
    let most = rules.at_once.of(told.len());
    let active = table.turns.len() + table.ending.len();
    let mut count = groups.count(table.turns.keys().chain(table.ending.keys()));
    let forced = groups.count(unasked);
    let mut kept = groups.count(&BTreeSet::new());
    let mut found = Vec::new();
    for (drive, waited, _) in order {
        let aged = is_aged(waited);
        let taken = if aged { 0 } else { unasked.len() };
        let has_room = groups.of(drive).iter().all(|group| {
            let group = *group as usize;
            let beside = if aged { 0 } else { forced[group] };
            count[group] + kept[group] + beside < groups.limit(group)
        });
        let counts = if active + found.len() + taken < most && has_room {
            found.push(drive);
            &mut count
        } else if aged {
            &mut kept
        } else {
            continue;
        };
        groups
            .of(drive)
            .iter()
            .for_each(|group| counts[*group as usize] += 1);
    }
    found
}
