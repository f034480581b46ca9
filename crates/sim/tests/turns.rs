//! The rule of turns gives the same tables as that of a real cluster: both are tested with the same cases
//! (`tests/swift/turns_table.py`).

use serde::Deserialize;
use sim::cluster::{AtOnce, Groups, Rules, Table, Told, decide};
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Cases {
    turns: Vec<History>,
    shifts: Vec<Ring>,
}

type Members = Vec<(Vec<u32>, u32)>;

#[derive(Deserialize)]
struct History {
    groups: Members,
    shifts: Option<Vec<u32>>,
    drives: u32,
    rules: Said,
    before: Table,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[allow(clippy::struct_field_names)]
struct Said {
    turn_seconds: f64,
    idle_seconds: f64,
    patience_seconds: f64,
    at_once: String,
}

#[derive(Deserialize)]
struct Step {
    elapsed: f64,
    told: BTreeMap<u32, Told>,
    table: Table,
}

#[derive(Deserialize)]
struct Ring {
    drives: u32,
    groups: Members,
    tiers: Vec<Vec<u32>>,
    shifts: Option<Vec<u32>>,
}

fn cases() -> Cases {
    let table = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/swift/turns.json");
    serde_json::from_str(&std::fs::read_to_string(table).unwrap()).unwrap()
}

fn groups(drives: u32, members: &Members, tiers: &[Vec<u32>]) -> Groups {
    let members = members.iter().map(|(drives, limit)| (&drives[..], *limit));
    Groups::new(drives, members, tiers)
}

#[test]
fn turns_are_those_of_the_table() {
    let mut given = 0;
    for (number, case) in cases().turns.into_iter().enumerate() {
        let groups = groups(case.drives, &case.groups, &[]).with_shifts(case.shifts);
        let said = case.rules;
        let rules = Rules {
            turn_seconds: said.turn_seconds,
            idle_seconds: said.idle_seconds,
            patience_seconds: said.patience_seconds,
            at_once: match said.at_once.strip_suffix('%') {
                Some(percent) => AtOnce::Percent(percent.parse().unwrap()),
                None => AtOnce::Count(said.at_once.parse().unwrap()),
            },
        };
        let mut before = case.before;
        for (n, step) in case.steps.into_iter().enumerate() {
            let table = decide(&groups, &step.told, &before, step.elapsed, &rules);
            assert_eq!(table, step.table, "history {number}, step {n}");
            given += table.turns.len();
            before = table;
        }
    }
    assert!(given > 100, "{given}");
}

#[test]
fn shifts_are_those_of_the_table() {
    for (number, case) in cases().shifts.into_iter().enumerate() {
        let groups = groups(case.drives, &case.groups, &case.tiers);
        let found: Option<Vec<u32>> = (0..case.drives).map(|n| groups.shift_of(n)).collect();
        assert_eq!(found, case.shifts, "ring {number}");
    }
}
