//! Random operations on the file system and on a model of it: the same answers, and the same to be seen.

use crate::common;
use crate::common::{Kind, Model, assert_clean, carry_out, seeds, seen};
use device::MemoryDrive;
use runtime::Runtime;
use smrfs::{FileSystem, Fit, MkfsOptions, MountOptions, Policy};
use std::sync::Arc;
use zone_alloc::Pressure;

fn lockstep(seed: u64, kind: Kind, whole_files: bool) {
    let mut random = fastrand::Rng::with_seed(seed);
    let runtime = Runtime::seeded(seed);
    let device = Arc::new(MemoryDrive::new(kind.geometry(40)).unwrap());
    let medium = kind.medium(device, None);
    let options = MkfsOptions {
        whole_files,
        block_size: [4096, 8192][seed as usize % 2],
        clean_when_full: kind.is_cleaned(),
        ..MkfsOptions::default()
    };
    FileSystem::mkfs_on(&medium, &runtime, &options).unwrap();
    let mount_options = MountOptions {
        buffer_bytes: [64 << 10, 1 << 20][seed as usize / 2 % 2],
        policy: [Policy::Greedy, Policy::CostBenefit][seed as usize % 2],
        fit: Fit::ALL[seed as usize % 5],
        ..MountOptions::default()
    };
    let mount = || FileSystem::mount_on(&medium, runtime.clone(), mount_options).unwrap();
    let (mut fs, mut model) = (mount(), Model::default());
    model.is_whole = whole_files;
    for turn in 0..900 {
        let operation = model.random(&mut random);
        if model.bytes() > 2_000_000 && matches!(operation, common::Operation::Write(..)) {
            continue;
        }
        let is_aside = matches!(
            operation,
            common::Operation::Preallocate(..) | common::Operation::Zero(..)
        );
        if is_aside && fs.space().used_bytes > 3_000_000 {
            continue;
        }
        let answer = carry_out(&fs, &operation).map_err(|error| error.errno());
        assert_eq!(answer, model.apply(&operation), "{turn}: {operation:?}");
        match random.u8(0..60) {
            0 => {
                fs.sync().unwrap();
                drop(fs);
                model.remount();
                fs = mount();
            }
            1 => {
                fs.clean(Pressure::Any).unwrap();
            }
            2..6 => assert_eq!(
                seen(&fs, model.opens.keys().copied()).unwrap(),
                model.seen()
            ),
            _ => {}
        }
    }
    assert_eq!(
        seen(&fs, model.opens.keys().copied()).unwrap(),
        model.seen()
    );
    fs.sync().unwrap();
    assert_clean(&fs);
    let space = fs.space();
    assert!(space.moved_bytes == 0 || space.cleaned_bands > 0);
}

#[test]
fn segments() {
    seeds(3).for_each(|seed| lockstep(seed, Kind::Bands(4), false));
}

#[test]
fn whole_files() {
    seeds(3).for_each(|seed| lockstep(seed, Kind::Bands(4), true));
}

#[test]
fn metadata_in_sequential_zones() {
    seeds(3).for_each(|seed| lockstep(seed, Kind::Bands(0), seed % 2 == 1));
}

#[test]
fn caveat_scriptor_in_segments_and_whole_files() {
    let kind = |seed| Kind::Caveat {
        distance: [16, 3][seed as usize % 2],
        range: 2,
        cleaned: false,
    };
    seeds(5).for_each(|seed| lockstep(seed, kind(seed), seed % 2 == 1));
}

#[test]
fn caveat_scriptor_that_is_cleaned_when_it_is_full() {
    let kind = Kind::Caveat {
        distance: 3,
        range: 0,
        cleaned: true,
    };
    seeds(2).for_each(|seed| lockstep(seed, kind, false));
}
