use super::*;

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
