use super::*;

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
