use super::*;

#[test]
fn a_sequential_zone_keeps_every_prefix_with_the_last_write_torn() {
    let drive = PowerCut::new(geometry()).unwrap();
    put(&drive, A, 0, &[1]);
    drive.flush().unwrap();
    put(&drive, A, 1, &[2]);
    put(&drive, A, 2, &[3, 4, 5]);
    let expected: [&[u8]; 4] = [&[1], &[1, 2], &[1, 2, 3], &[1, 2, 3, 4, 5]];
    assert_eq!(outcomes(&drive, A), expected.map(<[u8]>::to_vec).into());
}

#[test]
fn a_reset_happens_or_not_and_before_what_is_written_after_it() {
    let drive = PowerCut::new(geometry()).unwrap();
    put(&drive, A, 0, &[1, 2]);
    drive.flush().unwrap();
    drive.reset(A).unwrap();
    put(&drive, A, 0, &[7]);
    let expected: [&[u8]; 3] = [&[], &[1, 2], &[7]];
    assert_eq!(outcomes(&drive, A), expected.map(<[u8]>::to_vec).into());
}

#[test]
fn a_conventional_zone_keeps_any_single_loss_and_the_order_turned_round() {
    let drive = PowerCut::new(geometry()).unwrap();
    put(&drive, CONVENTIONAL, 0, &[9, 9, 9, 9]);
    drive.flush().unwrap();
    put(&drive, CONVENTIONAL, 2, &[1, 2]);
    put(&drive, CONVENTIONAL, 0, &[3, 4]);
    let states = drive.crash_states(CrashLimits::default());
    let seen: BTreeSet<Vec<u8>> = states
        .iter()
        .map(|state| blocks(&drive.image(state), CONVENTIONAL)[..4].to_vec())
        .collect();
    let expected: [[u8; 4]; 7] = [
        [9, 9, 9, 9],
        [3, 4, 1, 2],
        [3, 4, 9, 9],
        [3, 4, 9, 2],
        [3, 4, 1, 9],
        [9, 4, 1, 2],
        [3, 9, 1, 2],
    ];
    assert_eq!(seen, expected.map(Vec::from).into());
    // Other sets of blocks come up among the random states.
    let random: BTreeSet<Vec<u8>> = (0..400)
        .map(|seed| drive.image(&drive.random_crash_state(seed)))
        .map(|image| blocks(&image, CONVENTIONAL)[..4].to_vec())
        .collect();
    assert_eq!(random.len(), 16);
}

#[test]
fn zones_are_independent_and_all_combinations_are_enumerated() {
    let drive = PowerCut::new(geometry()).unwrap();
    put(&drive, A, 0, &[1]);
    put(&drive, B, 0, &[2]);
    drive.finish(C).unwrap();
    let states = drive.crash_states(CrashLimits::default());
    let seen: BTreeSet<_> = states
        .iter()
        .map(|state| drive.image(state))
        .map(|d| [A, B, C].map(|zone| d.report_zone(zone).unwrap().condition.short()))
        .collect();
    let mut expected = BTreeSet::new();
    for a in ["em", "cl"] {
        for b in ["em", "cl"] {
            for c in ["em", "fu"] {
                expected.insert([a, b, c]);
            }
        }
    }
    assert_eq!(seen, expected);
    assert_eq!(states.len(), 8);
}

#[test]
fn too_many_combinations_are_cut_down_to_the_telling_ones() {
    let drive = PowerCut::new(geometry()).unwrap();
    for zone in [A, B, C] {
        for block in 0..4 {
            put(&drive, zone, block, &[block as u8 + 1]);
        }
    }
    let limits = CrashLimits {
        max_states: 100,
        ..Default::default()
    };
    let states = drive.crash_states(limits);
    // Two ends, two for each zone, three more choices of each zone twice, and random ones.
    assert!((27..=100).contains(&states.len()), "{}", states.len());
    let distinct: BTreeSet<String> = states.iter().map(|state| format!("{state:?}")).collect();
    assert_eq!(distinct.len(), states.len());
    let seen: BTreeSet<[usize; 3]> = states
        .iter()
        .map(|state| drive.image(state))
        .map(|image| [A, B, C].map(|zone| written(&image, zone).len()))
        .collect();
    for must in [
        [0, 0, 0],
        [4, 4, 4],
        [0, 4, 4],
        [4, 0, 4],
        [0, 0, 4],
        [4, 0, 0],
    ] {
        assert!(seen.contains(&must), "{must:?} is missing");
    }
    assert!(
        seen.iter()
            .any(|state| state.iter().all(|blocks| (1..4).contains(blocks)))
    );
    assert_eq!(
        drive.crash_states(limits),
        states,
        "the same seed gives the same states"
    );
    let few = CrashLimits {
        max_states: 1,
        max_choices_per_zone: 0,
        seed: 0,
    };
    assert_eq!(drive.crash_states(few).len(), 1);
}
