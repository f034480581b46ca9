//! What a power cut leaves: what was flushed, a prefix of each sequential zone, any blocks of a
//! conventional one, and nothing else.

#![allow(clippy::unwrap_used)]

use device::power_cut::{CrashLimits, CrashState, ZoneChoice};
use device::{MemoryDrive, PowerCut, ZonedDevice};
use proptest::prelude::*;
use std::collections::BTreeSet;
use zone::{ByteOffset, Geometry, ZoneAddress, ZoneCondition, ZoneError, ZoneId, ZoneKind};

const BLOCK: u64 = 512;
const ZONE_BLOCKS: u64 = 8;
const CONVENTIONAL: ZoneId = ZoneId(0);
const A: ZoneId = ZoneId(1);
const B: ZoneId = ZoneId(2);
const C: ZoneId = ZoneId(3);

fn geometry() -> Geometry {
    Geometry {
        block_size: BLOCK as u32,
        zone_size: ZONE_BLOCKS * BLOCK,
        zone_capacity: ZONE_BLOCKS * BLOCK,
        zone_count: 6,
        conventional_zones: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 0,
        max_active_zones: 0,
        max_append_bytes: 4 * BLOCK as u32,
    }
}

fn at(zone: ZoneId, block: u64) -> ByteOffset {
    geometry().absolute(ZoneAddress::new(zone, block * BLOCK))
}

fn put(drive: &dyn ZonedDevice, zone: ZoneId, block: u64, fills: &[u8]) {
    let data: Vec<u8> = fills
        .iter()
        .flat_map(|fill| [*fill; BLOCK as usize])
        .collect();
    drive.write(at(zone, block), &data).unwrap();
}

/// The first byte of each block of a zone, for every block is filled with one value.
fn blocks(drive: &dyn ZonedDevice, zone: ZoneId) -> Vec<u8> {
    let mut bytes = vec![0; (ZONE_BLOCKS * BLOCK) as usize];
    drive.read(at(zone, 0), &mut bytes).unwrap();
    let blocks = bytes.chunks(BLOCK as usize);
    assert!(
        blocks
            .clone()
            .all(|block| block.iter().all(|byte| *byte == block[0]))
    );
    blocks.map(|block| block[0]).collect()
}

fn written(drive: &dyn ZonedDevice, zone: ZoneId) -> Vec<u8> {
    let pointer = drive.report_zone(zone).unwrap().write_pointer / BLOCK;
    let blocks = blocks(drive, zone);
    assert!(blocks[pointer as usize..].iter().all(|fill| *fill == 0));
    blocks[..pointer as usize].to_vec()
}

fn outcomes(drive: &PowerCut, zone: ZoneId) -> BTreeSet<Vec<u8>> {
    let states = drive.crash_states(CrashLimits::default());
    states
        .iter()
        .map(|state| written(&drive.image(state), zone))
        .collect()
}

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

#[test]
fn after_the_cut_nothing_works_and_the_last_command_may_have_happened() {
    let drive = PowerCut::new(geometry()).unwrap();
    put(&drive, A, 0, &[1]);
    drive.flush().unwrap();
    assert_eq!(drive.operation_count(), 2);
    drive.cut_after(2);
    put(&drive, A, 1, &[2]);
    assert!(!drive.is_cut());
    // Refused commands do not count.
    drive.write(at(A, 0), &[0; BLOCK as usize]).unwrap_err();
    let data = [3; 2 * BLOCK as usize];
    let lost = |answer: Result<(), ZoneError>| {
        assert!(matches!(answer.unwrap_err(), ZoneError::PowerLost { .. }));
    };
    lost(drive.append(A, &data).map(drop));
    assert!(drive.is_cut());
    lost(drive.read(at(A, 0), &mut [0; BLOCK as usize]));
    lost(drive.report(ZoneId(0), 1).map(drop));
    lost(drive.open(A));
    lost(drive.flush());
    assert_eq!(drive.operation_count(), 4);
    let expected: [&[u8]; 4] = [&[1], &[1, 2], &[1, 2, 3], &[1, 2, 3, 3]];
    assert_eq!(outcomes(&drive, A), expected.map(<[u8]>::to_vec).into());
}

#[test]
fn a_flush_that_the_cut_hits_makes_nothing_durable() {
    let drive = PowerCut::new(geometry()).unwrap();
    put(&drive, A, 0, &[1]);
    drive.cut_after(1);
    assert!(matches!(
        drive.flush().unwrap_err(),
        ZoneError::PowerLost { .. }
    ));
    assert!(outcomes(&drive, A).contains(&vec![]));
}

#[test]
fn a_restarted_drive_can_be_cut_again_and_has_no_open_zone() {
    let drive = PowerCut::new(geometry()).unwrap();
    put(&drive, A, 0, &[1, 2]);
    drive.open(B).unwrap();
    drive.cut_after(0);
    let everything = CrashState {
        zones: [(
            A,
            ZoneChoice::Prefix {
                operations: 1,
                torn_bytes: 0,
            },
        )]
        .into(),
    };
    let again = drive.restart(&everything);
    assert_eq!(
        again.report_zone(A).unwrap().condition,
        ZoneCondition::Closed
    );
    assert_eq!(
        again.report_zone(B).unwrap().condition,
        ZoneCondition::Empty
    );
    put(&again, A, 2, &[3]);
    let expected: [&[u8]; 2] = [&[1, 2], &[1, 2, 3]];
    assert_eq!(outcomes(&again, A), expected.map(<[u8]>::to_vec).into());
    assert_eq!(again.restart(&CrashState::default()).unflushed_count(), 0);
}

#[test]
fn a_drive_never_wakes_up_with_more_active_zones_than_it_can_have() {
    let limited = Geometry {
        max_open_zones: 2,
        max_active_zones: 2,
        ..geometry()
    };
    let drive = PowerCut::new(limited).unwrap();
    put(&drive, A, 0, &[1]);
    put(&drive, B, 0, &[1; 7]);
    drive.flush().unwrap();
    drive.reset(A).unwrap();
    put(&drive, B, 7, &[1]);
    put(&drive, C, 0, &[1]);
    put(&drive, ZoneId(4), 0, &[1]);
    let states = drive.crash_states(CrashLimits::default());
    assert_eq!(states.len(), 16);
    let mut full = BTreeSet::new();
    for state in &states {
        let report = drive.image(state).report(ZoneId(0), 10).unwrap();
        assert!(
            report
                .iter()
                .filter(|zone| zone.condition.is_active())
                .count()
                <= 2
        );
        full.insert(
            report
                .iter()
                .map(|zone| zone.condition.short())
                .collect::<Vec<_>>(),
        );
    }
    assert!(full.contains(&vec!["nw", "em", "fu", "cl", "cl", "em"]));
    assert!(full.contains(&vec!["nw", "cl", "cl", "em", "em", "em"]));
}

#[derive(Clone, Debug)]
enum Step {
    Write { zone: u32, blocks: u64 },
    Conventional { block: u64, blocks: u64 },
    Finish(u32),
    Reset(u32),
    Flush,
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..6_u32, 1..4_u64).prop_map(|(zone, blocks)| Step::Write { zone, blocks }),
        3 => (0..ZONE_BLOCKS, 1..3_u64)
            .prop_map(|(block, blocks)| Step::Conventional { block, blocks }),
        1 => (1..6_u32).prop_map(Step::Finish),
        2 => (1..6_u32).prop_map(Step::Reset),
        1 => Just(Step::Flush),
    ]
}

/// Every content a zone had since the last flush, block by block: what a cut may leave.
struct History {
    /// Of each sequential zone: the written blocks after each block written, reset or finish.
    sequential: Vec<BTreeSet<Vec<u8>>>,
    /// Of each block of the conventional zone: the values it had.
    conventional: Vec<BTreeSet<u8>>,
}

impl History {
    fn since_flush(drive: &dyn ZonedDevice) -> Self {
        Self {
            sequential: (1..6)
                .map(|zone| [written(drive, ZoneId(zone))].into())
                .collect(),
            conventional: blocks(drive, CONVENTIONAL)
                .into_iter()
                .map(|b| [b].into())
                .collect(),
        }
    }

    fn allows(&self, image: &dyn ZonedDevice) {
        for zone in 1..6 {
            let found = written(image, ZoneId(zone));
            assert!(
                self.sequential[zone as usize - 1].contains(&found),
                "zone {zone}: {found:?}"
            );
        }
        for (values, found) in self.conventional.iter().zip(blocks(image, CONVENTIONAL)) {
            assert!(
                values.contains(&found),
                "conventional: {found} of {values:?}"
            );
        }
    }
}

fn check(steps: &[Step], seed: u64) {
    let drive = PowerCut::new(geometry()).unwrap();
    // Does the same without losing anything, block by block.
    let shadow = MemoryDrive::new(geometry()).unwrap();
    let mut history = History::since_flush(&shadow);
    let mut fill = 0;
    for step in steps {
        match *step {
            Step::Write { zone, blocks } => {
                let zone = ZoneId(zone);
                let from = drive.report_zone(zone).unwrap().write_pointer / BLOCK;
                let blocks = blocks.min(ZONE_BLOCKS - from);
                if blocks == 0 {
                    continue;
                }
                fill = fill % 250 + 1;
                put(&drive, zone, from, &vec![fill; blocks as usize]);
                for block in from..from + blocks {
                    put(&shadow, zone, block, &[fill]);
                    history.sequential[zone.index() - 1].insert(written(&shadow, zone));
                }
            }
            Step::Conventional { block, blocks } => {
                let blocks = blocks.min(ZONE_BLOCKS - block);
                fill = fill % 250 + 1;
                put(&drive, CONVENTIONAL, block, &vec![fill; blocks as usize]);
                put(&shadow, CONVENTIONAL, block, &vec![fill; blocks as usize]);
                for block in block..block + blocks {
                    history.conventional[block as usize].insert(fill);
                }
            }
            Step::Finish(zone) | Step::Reset(zone) => {
                let zone = ZoneId(zone);
                for each in [&drive as &dyn ZonedDevice, &shadow] {
                    match step {
                        Step::Finish(_) => each.finish(zone).unwrap(),
                        _ => each.reset(zone).unwrap(),
                    }
                }
                history.sequential[zone.index() - 1].insert(written(&shadow, zone));
            }
            Step::Flush => {
                drive.flush().unwrap();
                history = History::since_flush(&shadow);
            }
        }
    }
    for zone in geometry().zones() {
        assert_eq!(blocks(&drive, zone), blocks(&shadow, zone));
    }
    let limits = CrashLimits {
        max_states: 60,
        max_choices_per_zone: 12,
        seed,
    };
    let states = drive.crash_states(limits);
    for state in &states {
        history.allows(&drive.image(state));
    }
    for seed in seed..seed.saturating_add(20) {
        history.allows(&drive.image(&drive.random_crash_state(seed)));
    }
    // The first two are the ends: nothing kept, which is the state of the last flush, and all.
    let last = drive.image(&CrashState::default());
    assert!(same(&last, &drive.image(&states[0])));
    drive.flush().unwrap();
    assert!(same(&shadow, &drive.image(&CrashState::default())));
}

fn same(one: &dyn ZonedDevice, other: &dyn ZonedDevice) -> bool {
    geometry()
        .zones()
        .all(|zone| blocks(one, zone) == blocks(other, zone))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_state_is_one_that_the_drive_went_through(
        steps in prop::collection::vec(steps(), 1..40),
        seed in any::<u64>(),
    ) {
        check(&steps, seed);
    }
}
