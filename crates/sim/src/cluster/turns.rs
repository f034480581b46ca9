//! Decides which drives have their turn to clean. The coordinator of a real cluster follows the same rule:
//! `zonestore_swift/turns.py` gives the reasons, and `tests/swift/turns.json` has cases that both must pass.
//!
//! Pure: the next table follows from the drives' reports, the last table and the time since.

use super::groups::Groups;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// Nodes ignore a table of turns that has not been renewed for this many seconds.
pub const BELIEVED_SECONDS: f64 = 5.0;
/// A turn may end at its drive this many seconds later than in the table.
const LATE_SECONDS: f64 = BELIEVED_SECONDS + 1.0;
/// A drive that gets no more tables decides for itself after this many seconds.
pub const HOLD_SECONDS: f64 = 15.0;
/// A shift with fewer seconds left than this gives no more turns.
const LEAST_SECONDS: f64 = 2.0;

/// How many drives may have a turn at once; at least one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum AtOnce {
    /// This many.
    Count(u32),
    /// This many per cent of the drives that report.
    Percent(f64),
}

impl AtOnce {
    /// The number of turns at once while `drives` drives report.
    pub fn of(self, drives: usize) -> usize {
        let share = match self {
            Self::Count(count) => count as usize,
            Self::Percent(percent) => (drives as f64 * percent / 100.0) as usize,
        };
        share.max(1)
    }
}

/// The parameters of [`decide`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rules {
    /// How long a turn is.
    pub turn_seconds: f64,
    /// A turn ends after this many seconds without cleaning.
    pub idle_seconds: f64,
    /// A drive that has waited this long comes first, and is not held up by drives that clean because they must.
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

/// A drive's report to the coordinator.
#[derive(Clone, Copy, PartialEq, Default, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Told {
    /// Round of the last table that the drive followed.
    pub followed: u64,
    /// Whether it waits for a turn to clean a zone.
    pub waits: bool,
    /// Whether it is cleaning a zone.
    pub cleans: bool,
    /// Whether it cleans even without a turn, because hardly any zone is free.
    pub urgent: bool,
    /// Zones that may be filled before it is urgent.
    pub spare: u32,
    /// Seconds left of its turn, as far as the drive knows.
    pub turn: f64,
}

/// A turn that goes on.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// Round in which it was given.
    pub round: u64,
    /// Seconds left.
    pub left: f64,
    /// Seconds that the drive waited for it.
    pub waited: f64,
    /// Seconds since the drive last cleaned in it.
    pub idle: f64,
}

/// A turn that has ended, of which the drive may not have heard yet.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ending {
    /// Round in which it was ended.
    pub round: u64,
    /// Seconds until it no longer counts, even if the drive has not confirmed its end.
    pub left: f64,
}

/// The table of turns that the coordinator publishes to drives and proxies.
#[derive(Clone, PartialEq, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Number of this table; above that of each table before it.
    pub round: u64,
    /// Turns that go on, by drive.
    pub turns: BTreeMap<u32, Turn>,
    /// Turns whose end the drive has not confirmed, by drive.
    pub ending: BTreeMap<u32, Ending>,
    /// Seconds that each of the other drives has waited for a turn.
    pub waiting: BTreeMap<u32, f64>,
    /// Seconds from now on in which no turn is given.
    pub quiet: f64,
    /// The shift whose drives are given turns now.
    pub shift: u32,
    /// Seconds left of this shift, if drives of other shifts wait.
    pub shift_left: f64,
}

impl Table {
    /// Seconds left of a drive's turn, rounded down, as the table tells the drive.
    pub fn turn_of(&self, drive: u32) -> Option<f64> {
        self.turns.get(&drive).map(|turn| turn.left.floor())
    }
}

type Heard = BTreeMap<u32, Told>;

/// The next table. `told` has the drives that reported lately; `elapsed` is the time since `before`, in seconds.
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
    // A drive that did not report, or whose turn is ending, keeps the time that it has waited.
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

/// Carries over the turns of the last table: those that go on, and those that end.
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
        // The coordinator has lost its table, or the drive followed another coordinator's: the turn counts until it
        // is over.
        let is_known = table.turns.contains_key(drive) || table.ending.contains_key(drive);
        if told.turn > 0.0 && !is_known {
            let left = told.turn + LATE_SECONDS;
            table.ending.insert(*drive, Ending { round, left });
        }
    }
    table
}

/// The drives whose turns are taken back because a drive of their group cleans without a turn (`unasked`). A drive
/// that is urgent, or that had waited as long as `patience_seconds`, keeps its turn.
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

/// The present shift and the seconds that it goes on. It ends when its time is over or none of its drives cleans or
/// waits; but it goes on while no drive of another shift waits.
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

/// The drives that are given a turn now. Those that have waited as long as `patience_seconds` come first, the longest
/// wait before the others; then those of the present shift, the fewest spare zones first.
///
/// A drive that has waited so long but cannot have its turn yet reserves its place in its groups, so that no other
/// drive takes it.
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
