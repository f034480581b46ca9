//! Random calls and steps from a seed.

use super::call::{BY_NAME, COLLECTIONS, Call, Data, Must, OBJECTS, Row, Share, Target, hashed};
use super::step::Step;
use super::world::World;
use fastrand::Rng;

pub const KINDS: u8 = 25;

/// Frequency of each kind of call.
const WEIGHTS: [u8; KINDS as usize] = [
    1, 3, 1, 1, 3, 3, 3, 14, 6, 6, 4, 4, 6, 1, 1, 2, 2, 5, 2, 2, 1, 2, 4, 3, 5,
];

fn data(random: &mut Rng) -> Data {
    let length = match random.u8(..16) {
        0..8 => random.u32(..5_000),
        8..12 => random.u32(5_000..40_000),
        12..15 => random.u32(60_000..200_000),
        _ => random.u32(200_000..500_000),
    };
    let seed = random.u32(..);
    Data { seed, length }
}

fn share(random: &mut Rng) -> Share {
    Share(match random.u8(..16) {
        0 => u16::MAX,
        1 => u16::MAX - 1,
        2 => 0,
        _ => random.u16(..),
    })
}

fn rows(random: &mut Rng) -> Vec<Row> {
    let count = random.usize(..5);
    let size = |random: &mut Rng| [random.u16(..40), random.u16(..700)][random.usize(..2)];
    (0..count)
        .map(|_| (random.u8(..24), size(random)))
        .collect()
}

fn collection(random: &mut Rng) -> u8 {
    random.u8(..COLLECTIONS.len() as u8)
}

/// A random object name, mostly one that the collection can hold.
fn target(random: &mut Rng, world: &World) -> Target {
    let mut target = (0, 0);
    for _ in 0..12 {
        target = (collection(random), random.u8(..OBJECTS));
        if world.find(target).is_ok() {
            break;
        }
    }
    target
}

/// A random object, mostly one that exists.
fn present(random: &mut Rng, world: &World) -> Target {
    for _ in 0..24 {
        let at = target(random, world);
        if matches!(world.find(at), Ok(Some(_))) {
            return at;
        }
    }
    target(random, world)
}

/// A random call of a kind, for a store that holds `world`.
pub fn call(random: &mut Rng, kind: u8, world: &World) -> Call {
    let random = &mut *random;
    match kind {
        0 => Call::CreateCollection(random.u8(..BY_NAME), rows(random)),
        1 => {
            let bits = random.u8(..4);
            let first = random.u32(..1 << bits);
            Call::CreateHashed(
                random.u8(BY_NAME..COLLECTIONS.len() as u8),
                hashed(random.u32(..4), bits, first),
            )
        }
        2 => Call::RemoveCollection(collection(random)),
        3 => Call::SetCollectionAttributes(collection(random), rows(random)),
        4 => Call::Split(collection(random), collection(random)),
        5 => Call::Merge(collection(random), collection(random)),
        6 => {
            let row = (random.u8(..24), random.u16(..4));
            let must = match random.u8(..4) {
                0 => Must::BeAbsent,
                1 => Must::BePresent,
                2 => Must::HaveAttribute(row),
                _ => Must::NotHaveAttribute(row),
            };
            Call::Require(present(random, world), must)
        }
        7 => Call::Put(target(random, world), data(random), rows(random)),
        8 => Call::Write(present(random, world), share(random), data(random)),
        9 => Call::Append(target(random, world), data(random)),
        10 => Call::Truncate(present(random, world), share(random)),
        11 => {
            let length = data(random).length;
            Call::Punch(present(random, world), share(random), length)
        }
        12 => Call::Remove(present(random, world)),
        13 => Call::RemoveIfPresent(target(random, world)),
        14 => Call::SetAttributes(present(random, world), rows(random)),
        15 => Call::UpdateAttributes(present(random, world), rows(random), random.u8(..24)),
        16 => Call::Touch(target(random, world)),
        17 => Call::OmapSet(present(random, world), rows(random)),
        18 => {
            let keys = rows(random).into_iter().map(|(key, _)| key).collect();
            Call::OmapRemove(present(random, world), keys)
        }
        19 => Call::OmapRemoveRange(present(random, world), random.u8(..24), random.u8(..24)),
        20 => Call::OmapClear(present(random, world)),
        21 => {
            let count = random.usize(..4);
            let parts = (0..count).map(|_| present(random, world)).collect();
            Call::Assemble(target(random, world), parts)
        }
        22 => Call::Rename(present(random, world), target(random, world)),
        23 => Call::Clone(present(random, world), target(random, world)),
        24 => {
            let (from, to) = (present(random, world), target(random, world));
            let (a, b) = (share(random), share(random));
            let (first, last) = if a.0 < b.0 { (a, b) } else { (b, a) };
            Call::CloneRange(from, first, last, to, share(random))
        }
        _ => unreachable!("there are {KINDS} kinds"),
    }
}

/// A call of any kind.
pub fn any_call(random: &mut Rng, world: &World) -> Call {
    let all: u32 = WEIGHTS.iter().map(|weight| u32::from(*weight)).sum();
    let mut at = random.u32(..all);
    for (kind, weight) in (0..).zip(WEIGHTS) {
        match at.checked_sub(u32::from(weight)) {
            Some(left) => at = left,
            None => return call(random, kind, world),
        }
    }
    unreachable!("below the sum of all weights")
}

/// Calls of a transaction; mostly only the last of them may fail.
pub fn transaction(random: &mut Rng, world: &World, most_bytes: usize) -> Vec<Call> {
    let mut world = world.clone();
    let mut calls = Vec::new();
    for _ in 0..random.usize(1..5) {
        let bytes = world.bytes();
        let is_full = bytes > most_bytes;
        let call = match random.u8(..6) {
            0 | 1 if is_full => Call::Remove(present(random, &world)),
            2 | 3 if is_full => Call::Truncate(present(random, &world), share(random)),
            _ if is_full => {
                let small = Data {
                    seed: random.u32(..),
                    length: 100,
                };
                Call::Put(present(random, &world), small, rows(random))
            }
            0 if bytes < most_bytes * 7 / 8 => {
                let (seed, length) = (
                    random.u32(..),
                    random.usize(..(most_bytes / 16).min(300_000)) as u32,
                );
                Call::Put(target(random, &world), Data { seed, length }, rows(random))
            }
            _ => any_call(random, &world),
        };
        let works = world.carry_out(&call).is_ok();
        // Keeps only a quarter of the calls that fail.
        if works || random.u8(..4) == 0 {
            calls.push(call);
        }
        if !works {
            break;
        }
    }
    calls
}

/// The next random step of a run.
pub fn step(random: &mut Rng, world: &World, most_bytes: usize) -> Step {
    match random.u16(..400) {
        0 => Step::Restart {
            clean: random.bool(),
            number: random.u32(..),
        },
        1..3 => Step::Trouble(random.u16(..120)),
        3..10 => Step::Seal,
        10..50 => Step::Clean,
        50..55 => Step::Flush,
        55..65 => Step::Tend,
        65..75 => Step::Wait,
        75..80 => Step::Abandon(data(random)),
        80..110 => Step::Upload(target(random, world), data(random)),
        110..111 => Step::Check,
        111..121 => Step::Hold(present(random, world)),
        121..200 => Step::Commit {
            calls: transaction(random, world, most_bytes),
            readable: true,
        },
        _ => Step::Commit {
            calls: transaction(random, world, most_bytes),
            readable: false,
        },
    }
}
