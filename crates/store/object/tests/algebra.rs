//! Random sequences of operations against byte vectors. `ZONESTORE_CASES=n` runs other than 2,000,
//! `ZONESTORE_SEED=n` other ones.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

mod world;

use fastrand::Rng;
use world::World;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |n| n.parse().unwrap())
}

/// Mostly small, sometimes larger than the largest checksum block, often at edges of blocks.
fn length(random: &mut Rng) -> usize {
    match random.u8(0..10) {
        0 => random.usize(0..3),
        1..=3 => random.usize(1..5_000),
        4..=6 => 4096 * random.usize(1..12) + random.usize(0..3) - 1,
        7 | 8 => random.usize(1..60_000),
        _ => random.usize(100_000..300_000),
    }
}

fn step(world: &mut World, random: &mut Rng) {
    let name = random.u8(0..4);
    let other = random.u8(0..4);
    let size = world.model.get(&name).map_or(0, Vec::len) as u64;
    let mut place = |limit: u64| match random.u8(0..3) {
        0 => limit,
        1 => random.u64(0..=limit) / 4096 * 4096,
        _ => random.u64(0..=limit),
    };
    let (at, to) = (place(size), place(size));
    let (from, to) = (at.min(to), at.max(to));
    let other_size = world.model.get(&other).map_or(0, Vec::len) as u64;
    let offset = place(other_size);
    match random.u8(0..20) {
        0..=2 => {
            world.remove(name);
            let data = data(random);
            world.write(random, name, 0, &data);
        }
        3..=6 => {
            let data = data(random);
            world.write(random, name, at, &data);
        }
        7 | 8 => {
            let data = data(random);
            world.write(random, name, size, &data);
        }
        9 => world.truncate(name, at),
        10 | 11 => world.punch(name, from, to),
        12..=14 => world.clone_range(name, from, to, other, offset),
        15 if name != other => {
            world.remove(other);
            world.clone_range(name, 0, size, other, 0);
        }
        16 => world.rename(name, other),
        17 => world.assemble(name, other, random.u8(0..4)),
        18 => world.remove(name),
        _ => world.relocate(random),
    }
}

fn data(random: &mut Rng) -> Vec<u8> {
    let mut bytes = vec![0; length(random)];
    random.fill(&mut bytes);
    bytes
}

#[test]
fn objects_are_the_bytes_that_they_should_be() {
    let first = number("ZONESTORE_SEED", 0) << 32;
    for seed in first..first + number("ZONESTORE_CASES", 2_000) {
        let result = std::panic::catch_unwind(|| {
            let mut random = Rng::with_seed(seed);
            let mut world = World::default();
            for _ in 0..random.u32(1..25) {
                step(&mut world, &mut random);
                if random.u8(0..4) == 0 {
                    world.check();
                }
            }
            world.check();
        });
        assert!(result.is_ok(), "sequence {seed}");
    }
}
