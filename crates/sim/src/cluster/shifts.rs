//! Finds shifts: sets of drives that may clean together because no object has too many of its parts on them.
//! `zonestore_swift/shifts.py` is the same in Python, and gives the reasons. Pure.

use std::collections::{BTreeMap, BTreeSet};

/// The most zones or nodes to make shifts of: with more, it takes too long until a shift comes again.
const MOST: usize = 32;
/// The largest share of groups that may be left out, as they have too many drives in one zone or node.
const ASTRAY: f64 = 0.05;
/// The least number of drives that [`as_they_come`] examines.
const SOME: usize = 256;

/// The shift of each drive; `None` if at least as many drives can clean without shifts.
///
/// `groups` has the drives of each group and how many may clean at once; `tiers` has, for each way to divide the
/// drives, the part that each drive is in, such as its zone.
pub fn find<'a>(
    groups: impl Iterator<Item = (&'a [u32], u32)> + Clone,
    tiers: &[Vec<u32>],
) -> Option<Vec<u32>> {
    let count = |shifts: &Vec<u32>| shifts.iter().max().map_or(1, |last| last + 1);
    let found = tiers.iter().filter_map(|parts| of(groups.clone(), parts));
    let best = found.min_by_key(count)?;
    (1.0 / f64::from(count(&best)) > as_they_come(groups)).then_some(best)
}

/// Drives of a group by part, and how many of the group may clean at once.
type Pattern = (BTreeMap<u32, u32>, u32);

/// Puts each part into the first shift where it fits. `None` if too many groups have too many drives in one part, or
/// the number of parts is unsuitable.
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

/// The share of all drives that has a turn without shifts, estimated as ln(n) ÷ n if a drive shares groups with n
/// others.
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
