//! Which drives may clean together because no object has too many of its parts on them; `zonestore_swift/shifts.py`
//! has the same, and says why. Pure.

use std::collections::{BTreeMap, BTreeSet};

/// With more zones or machines than this it takes long until a shift comes again.
const MOST: usize = 32;
/// The part of all groups that may have more drives of a zone than may clean at once.
const ASTRAY: f64 = 0.05;
/// Drives, at least, that are asked how many others they share with.
const SOME: usize = 256;

/// The shift of each drive; `None` if turns as they come are as good. `groups`: drives and how many of them may clean
/// at once; `tiers`: for each way to divide the drives the part that each is in, such as its zone.
pub fn find<'a>(
    groups: impl Iterator<Item = (&'a [u32], u32)> + Clone,
    tiers: &[Vec<u32>],
) -> Option<Vec<u32>> {
    let count = |shifts: &Vec<u32>| shifts.iter().max().map_or(1, |last| last + 1);
    let found = tiers.iter().filter_map(|parts| of(groups.clone(), parts));
    let best = found.min_by_key(count)?;
    (1.0 / f64::from(count(&best)) > as_they_come(groups)).then_some(best)
}

/// How many drives of each part are in a group, and how many may clean at once.
type Pattern = (BTreeMap<u32, u32>, u32);

/// Shifts of whole parts, each part in the first one where it fits. `None` if a part by itself is too many.
fn of<'a>(groups: impl Iterator<Item = (&'a [u32], u32)>, parts: &[u32]) -> Option<Vec<u32>> {
    let names: BTreeSet<u32> = parts.iter().copied().collect();
    if !(2..=MOST).contains(&names.len()) {
        return None;
    }
    let mut patterns: BTreeMap<Pattern, u64> = BTreeMap::new();
    for (drives, limit) in groups {
        let mut counts = BTreeMap::new();
        for drive in drives {
            *counts.entry(parts[*drive as usize]).or_insert(0) += 1;
        }
        *patterns.entry((counts, limit)).or_insert(0) += 1;
    }
    let is_astray = |(counts, limit): &Pattern| counts.values().any(|count| count > limit);
    let all: u64 = patterns.values().sum();
    let astray: u64 = patterns
        .iter()
        .filter(|(p, _)| is_astray(p))
        .map(|(_, n)| n)
        .sum();
    if astray as f64 > ASTRAY * all as f64 {
        return None;
    }
    patterns.retain(|pattern, _| !is_astray(pattern));
    let mut shifts: Vec<Vec<u32>> = Vec::new();
    for name in names {
        let fits = |shift: &&mut Vec<u32>| {
            patterns.keys().all(|(counts, limit)| {
                let of = |part: &u32| counts.get(part).copied().unwrap_or(0);
                shift.iter().map(of).sum::<u32>() + of(&name) <= *limit
            })
        };
        match shifts.iter_mut().find(fits) {
            Some(shift) => shift.push(name),
            None => shifts.push(vec![name]),
        }
    }
    let shift_of = |part: &u32| shifts.iter().position(|shift| shift.contains(part));
    parts
        .iter()
        .map(|part| Some(shift_of(part)? as u32))
        .collect()
}

/// The share of all drives that has a turn then.
fn as_they_come<'a>(groups: impl Iterator<Item = (&'a [u32], u32)> + Clone) -> f64 {
    let all: BTreeSet<u32> = groups
        .clone()
        .flat_map(|(drives, _)| drives)
        .copied()
        .collect();
    let some = all.iter().step_by((all.len() / SOME).max(1));
    let mut others: BTreeMap<u32, BTreeMap<u32, f64>> =
        some.map(|n| (*n, BTreeMap::new())).collect();
    for (members, limit) in groups {
        for drive in members {
            let Some(shared) = others.get_mut(drive) else {
                continue;
            };
            for other in members.iter().filter(|other| *other != drive) {
                let shared = shared.entry(*other).or_insert(0.0);
                *shared = shared.max(1.0 / f64::from(limit));
            }
        }
    }
    let sharing: Vec<f64> = others
        .values()
        .map(|shared| shared.values().sum())
        .collect();
    let mean = sharing.iter().sum::<f64>() / sharing.len().max(1) as f64;
    match mean > std::f64::consts::E {
        true => mean.ln() / mean,
        false => 1.0,
    }
}
