//! Random steps on the file system and on its model, on drives in memory and in files, with clean and unclean restarts;
//! and random power cuts. The cases are the same in each run; `ZONESTORE_CASES=n` runs n of each kind.

use crate::support;
use crate::support::{NAMES, Pair, Step, assert_clean, format, geometry, mount};
use bluefs::{Error, Role};
use device::power_cut::CrashLimits;
use device::{FileDrive, MemoryDrive, PowerCut, ZonedDevice};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::sync::Arc;
use zone::Geometry;

fn steps(length: usize, restarts: bool) -> impl Strategy<Value = Vec<Step>> {
    let file = 0..NAMES.len();
    let size = prop_oneof![1usize..700, 1usize..9000, Just(512), Just(24 << 10)];
    let step = prop_oneof![
        3 => file.clone().prop_map(Step::Create),
        8 => (file.clone(), size).prop_map(|(f, n)| Step::Append(f, n)),
        5 => file.clone().prop_map(Step::Sync),
        1 => file.clone().prop_map(Step::RangeSync),
        2 => file.clone().prop_map(Step::Close),
        2 => file.clone().prop_map(Step::Delete),
        2 => (file.clone(), file.clone()).prop_map(|(f, g)| Step::Rename(f, g)),
        1 => (file.clone(), file.clone()).prop_map(|(f, g)| Step::Link(f, g)),
        1 => (file.clone(), any::<usize>()).prop_map(|(f, n)| Step::Truncate(f, n)),
        1 => Just(Step::SyncNames),
        2 => Just(Step::Clean),
        2 => (file, any::<usize>()).prop_map(|(f, n)| Step::Read(f, n)),
        1 => if restarts { prop_oneof![Just(Step::Remount), Just(Step::Kill)].boxed() } else { Just(Step::SyncNames).boxed() },
    ];
    prop::collection::vec(step, 1..length)
}

fn geometries() -> impl Strategy<Value = Geometry> {
    (
        prop_oneof![Just(0u32), Just(3), Just(8)],
        prop_oneof![Just(0u32), Just(6), Just(14)],
    )
        .prop_map(|(conventional, active)| geometry(64, conventional, active))
}

/// Carries out the steps on both. A step that finds no space ends the run, for other tests are about space.
fn run<D: ZonedDevice + 'static>(device: Arc<D>, steps: &[Step]) {
    format(&*device, Role::Alone);
    let mut pair = Pair::new(device).unwrap();
    for step in steps {
        match pair.step(*step) {
            Ok(()) => {}
            Err(Error::NoSpace { .. }) => return,
            Err(error) => panic!("{step:?}: {error}"),
        }
    }
    pair.verify_exactly();
    pair.step(Step::Kill).unwrap();
    pair.step(Step::Remount).unwrap();
}

fn config(cases: u32, max_shrink_iters: u32) -> ProptestConfig {
    let asked = std::env::var("ZONESTORE_CASES").ok();
    ProptestConfig {
        cases: asked.and_then(|n| n.parse().ok()).unwrap_or(cases),
        max_shrink_iters,
        rng_seed: RngSeed::Fixed(7 + support::seed()),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(96, 2000))]

    #[test]
    fn does_what_the_model_does_in_memory(g in geometries(), steps in steps(120, true)) {
        run(Arc::new(MemoryDrive::new(g).unwrap()), &steps);
    }

    #[test]
    fn survives_random_power_cuts(
        g in geometries(), steps in steps(60, false), cut in 1u64..160, seed: u64,
    ) {
        let device = Arc::new(PowerCut::new(g).unwrap());
        format(&*device, Role::Alone);
        let Ok(mut pair) = Pair::new(device.clone()) else { panic!("mount") };
        device.cut_after(cut);
        for step in &steps {
            if pair.step(*step).is_err() {
                break;
            }
        }
        let limits = CrashLimits { max_states: 6, max_choices_per_zone: 8, seed };
        for state in device.crash_states(limits) {
            let image = Arc::new(device.image(&state));
            let fs = match mount(image) {
                Ok(fs) => fs,
                Err(error) => panic!("{error} after {state:?}"),
            };
            if let Some(why) = pair.model.contradiction(&fs) {
                panic!("{why} after {state:?}");
            }
            assert_clean(&fs);
        }
    }
}

proptest! {
    #![proptest_config(config(16, 200))]

    #[test]
    fn does_what_the_model_does_in_a_file(g in geometries(), steps in steps(60, true)) {
        let directory = tempfile::tempdir().unwrap();
        let drive = FileDrive::create(directory.path().join("drive"), &g, "test").unwrap();
        run(Arc::new(drive), &steps);
    }
}
