//! The power goes at every command in turn. Whatever of the unflushed commands the drive then has, a mount finds the
//! state after some of the operations, all of them up to the last sync at least, and a check finds nothing wrong.

use crate::common::{Kind, Model, Operation, Seen, assert_clean, carry_out, damage, seeds, seen};
use device::power_cut::{CrashLimits, PowerCut};
use device::{MemoryDrive, ZonedDevice};
use runtime::Runtime;
use smrfs::{FileSystem, Fit, Medium, MkfsOptions, MountOptions, ROOT};
use std::sync::Arc;
use zone_alloc::Pressure;

#[derive(Clone, Copy)]
struct Case {
    seed: u64,
    kind: Kind,
    whole_files: bool,
    fit: Fit,
    /// Syncs before it begins, so that a checkpoint comes soon.
    syncs: u32,
    operations: usize,
}

enum Step {
    Do(Operation),
    Clean,
}

/// The steps, and what is to be seen after each.
fn plan(case: Case) -> (Vec<Step>, Vec<Seen>) {
    let mut random = fastrand::Rng::with_seed(case.seed);
    let mut model = Model::default();
    model.is_whole = case.whole_files;
    let mut steps = Vec::new();
    let mut states = Vec::new();
    let mut note = |model: &Model| {
        let mut found = model.clone();
        found.remount();
        states.push(found.seen());
    };
    note(&model);
    for turn in 0..case.operations {
        let mut operation = model.random(&mut random);
        if turn < 4 {
            operation = Operation::Create(ROOT, vec![b'a' + turn as u8], libc::S_IFREG | 0o644);
        }
        if random.u8(0..25) == 0 {
            steps.push(Step::Clean);
        } else {
            let _ = model.apply(&operation);
            steps.push(Step::Do(operation));
        }
        note(&model);
    }
    (steps, states)
}

/// Runs until the power is gone: how many steps were begun, and after how many all was durable.
fn run(fs: &FileSystem, device: &PowerCut, steps: &[Step]) -> (usize, usize) {
    let mut durable = 0;
    for (n, step) in steps.iter().enumerate() {
        match step {
            Step::Do(operation) => {
                let done = carry_out(fs, operation);
                if device.is_cut() {
                    return (n + 1, durable);
                }
                if matches!(operation, Operation::Sync) {
                    done.unwrap();
                    durable = n + 1;
                }
            }
            Step::Clean => {
                let done = fs.clean(Pressure::Any);
                if device.is_cut() {
                    return (n + 1, durable);
                }
                done.unwrap();
                durable = n + 1;
            }
        }
    }
    (steps.len(), durable)
}

/// A drive whose power can be cut, what a file system on it lies on, and that.
struct Begun {
    device: Arc<PowerCut>,
    medium: Medium,
    fs: FileSystem,
    runtime: Runtime,
}

fn begin(case: Case) -> Begun {
    let runtime = Runtime::seeded(case.seed);
    let device = Arc::new(PowerCut::new(case.kind.geometry(20)).unwrap());
    let medium = case.kind.medium(device.clone(), None);
    let options = MkfsOptions {
        whole_files: case.whole_files,
        clean_when_full: case.kind.is_cleaned(),
        ..MkfsOptions::default()
    };
    FileSystem::mkfs_on(&medium, &runtime, &options).unwrap();
    let mount_options = MountOptions {
        // A small one is written out between syncs, too: what is freed meanwhile must not be used.
        buffer_bytes: [16 << 10, 128 << 10][case.fit as usize % 2],
        fit: case.fit,
        ..MountOptions::default()
    };
    let fs = FileSystem::mount_on(&medium, runtime.clone(), mount_options).unwrap();
    for turn in 0..case.syncs {
        let mode = Operation::Mode(ROOT, 0o700 + turn % 2);
        carry_out(&fs, &mode).unwrap();
        fs.sync().unwrap();
    }
    carry_out(&fs, &Operation::Mode(ROOT, 0o755)).unwrap();
    fs.sync().unwrap();
    Begun {
        device,
        medium,
        fs,
        runtime,
    }
}

fn look(image: &Medium, runtime: &Runtime, allowed: &[Seen], what: &str) {
    let read_only = MountOptions {
        read_only: true,
        ..MountOptions::default()
    };
    let fs = FileSystem::mount_on(image, runtime.clone(), read_only)
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let first = seen(&fs, []).unwrap();
    assert!(
        allowed.contains(&first),
        "{what}: {first:#?}\n{:#?}",
        allowed[0]
    );
    assert_clean(&fs);
    drop(fs);
    // As it is mounted for writing, and goes on.
    let mount = || {
        FileSystem::mount_on(image, runtime.clone(), MountOptions::default())
            .unwrap_or_else(|error| panic!("{what}: {error}"))
    };
    let fs = mount();
    assert_eq!(seen(&fs, []).unwrap(), first, "{what}");
    let new = Operation::Create(ROOT, b"after".to_vec(), libc::S_IFREG | 0o600);
    carry_out(&fs, &new).unwrap();
    let ino = fs.lookup(ROOT, b"after").unwrap().ino;
    carry_out(&fs, &Operation::Write(ino, 0, vec![5; 9000])).unwrap();
    fs.sync().unwrap();
    let then = seen(&fs, []).unwrap();
    drop(fs);
    let fs = mount();
    assert_eq!(seen(&fs, []).unwrap(), then, "{what}");
    assert_clean(&fs);
}

fn every_cut(case: Case, stride: usize) {
    let (steps, states) = plan(case);
    let Begun { device, fs, .. } = begin(case);
    let start = device.operation_count();
    let (done, _) = run(&fs, &device, &steps);
    assert_eq!(done, steps.len());
    let total = device.operation_count() - start;
    assert!(total > 0, "{total}");
    assert!(case.syncs == 0 || fs.counts().checkpoints > 0);
    for cut in (1..=total).step_by(stride) {
        let Begun {
            device,
            medium,
            fs,
            runtime,
        } = begin(case);
        device.cut_after(cut);
        let (begun, durable) = run(&fs, &device, &steps);
        drop(fs);
        let limits = CrashLimits {
            max_states: 6,
            seed: cut,
            ..CrashLimits::default()
        };
        let mut crashes = device.crash_states(limits);
        crashes.extend((0..3).map(|n| device.random_crash_state(cut * 10 + n)));
        for (n, crash) in crashes.iter().enumerate() {
            let what = format!("seed {}, cut {cut}, state {n}", case.seed);
            let image: Arc<MemoryDrive> = Arc::new(device.image(crash));
            look(
                &case.kind.medium(image, damage(&medium)),
                &runtime,
                &states[durable..=begun],
                &what,
            );
        }
    }
}

const CASE: Case = Case {
    seed: 0,
    kind: Kind::Bands(4),
    whole_files: false,
    fit: Fit::Best,
    syncs: 0,
    operations: 150,
};

fn stride() -> usize {
    // All of them, if a number of seeds is asked for.
    if std::env::var_os("SMRFS_SEEDS").is_some() {
        1
    } else {
        3
    }
}

#[test]
fn segments() {
    seeds(2).for_each(|seed| every_cut(Case { seed, ..CASE }, stride()));
}

#[test]
fn whole_files() {
    let case = Case {
        whole_files: true,
        ..CASE
    };
    seeds(1).for_each(|seed| {
        every_cut(
            Case {
                seed: 100 + seed,
                ..case
            },
            stride(),
        )
    });
}

#[test]
fn a_checkpoint() {
    for conventional in [4, 0] {
        let case = Case {
            // 448 KiB hold 112 frames of one block.
            syncs: if conventional == 0 { 122 } else { 106 },
            operations: 100,
            kind: Kind::Bands(conventional),
            ..CASE
        };
        seeds(2).for_each(|seed| {
            every_cut(
                Case {
                    seed: 200 + seed,
                    ..case
                },
                1,
            )
        });
    }
}

#[test]
fn metadata_in_sequential_zones() {
    let case = Case {
        kind: Kind::Bands(0),
        ..CASE
    };
    seeds(1).for_each(|seed| {
        every_cut(
            Case {
                seed: 300 + seed,
                ..case
            },
            stride(),
        )
    });
}

#[test]
fn a_file_system_that_is_made_over_an_old_one_shows_nothing_of_it() {
    let Begun {
        device,
        fs,
        runtime,
        ..
    } = begin(CASE);
    carry_out(
        &fs,
        &Operation::Create(ROOT, b"old".to_vec(), libc::S_IFREG),
    )
    .unwrap();
    fs.sync().unwrap();
    let old = seen(&fs, []).unwrap();
    drop(fs);
    let start = device.operation_count();
    FileSystem::mkfs(device.clone(), &runtime, &MkfsOptions::default()).unwrap();
    let total = device.operation_count() - start;
    let new = Model::default().seen();
    for cut in 1..=total {
        let Begun {
            device,
            fs,
            runtime,
            ..
        } = begin(CASE);
        carry_out(
            &fs,
            &Operation::Create(ROOT, b"old".to_vec(), libc::S_IFREG),
        )
        .unwrap();
        fs.sync().unwrap();
        drop(fs);
        device.cut_after(cut);
        FileSystem::mkfs(device.clone(), &runtime, &MkfsOptions::default()).unwrap_err();
        for seed in 0..4 {
            let image = device.image(&device.random_crash_state(seed));
            let options = MountOptions::default();
            if let Ok(fs) = FileSystem::mount(Arc::new(image), runtime.clone(), options) {
                let found = seen(&fs, []).unwrap();
                assert!(found == new || found == old, "{found:?}");
            }
        }
    }
    assert!(device.geometry().zone_count > 0);
}

/// The bitmap of the drive proves it: whatever was written, and whichever writes were lost, no block that is live at any
/// moment in which the power may go is damaged. A mount compares them, and a check reads all data.
#[test]
fn caveat_scriptor() {
    for fit in Fit::ALL {
        let n = fit as u64;
        let case = Case {
            kind: Kind::Caveat {
                distance: [16, 1, 5, 16, 40][n as usize],
                range: n % 2,
                // With cleaning, as pieces, or as whole files.
                cleaned: n.is_multiple_of(3),
            },
            fit,
            whole_files: n % 3 == 1,
            operations: 70,
            ..CASE
        };
        seeds(4).for_each(|seed| {
            every_cut(
                Case {
                    seed: 400 + 10 * n + seed,
                    ..case
                },
                stride(),
            )
        });
    }
}

#[test]
fn caveat_scriptor_writes_a_checkpoint() {
    let case = Case {
        kind: Kind::Caveat {
            distance: 16,
            range: 6,
            cleaned: false,
        },
        syncs: 106,
        operations: 60,
        ..CASE
    };
    seeds(1).for_each(|seed| {
        every_cut(
            Case {
                seed: 500 + seed,
                ..case
            },
            1,
        )
    });
}
