//! Power cuts during mounts, many in succession, and mounts after failed writes.

use super::*;

#[test]
fn mounting() {
    // Cuts the power while a mount begins its new journal, then mounts the state left, twelve times in succession.
    for (g, copies) in geometries() {
        let mut states = 0;
        for point in 1..20 {
            let device = Arc::new(PowerCut::new(g.clone()).unwrap());
            format_copies(&*device, Role::Alone, copies);
            let mut pair = Pair::new(device.clone()).unwrap();
            for step in [
                Create(1),
                Append(1, 700),
                Sync(1),
                Create(0),
                Append(0, 9000),
                Sync(0),
            ] {
                pair.step(step).unwrap();
            }
            let Pair { model, .. } = &pair;
            device.cut_after(0);
            let mut device = Arc::new(device.restart(&device.crash_states(limits())[0]));
            for round in 0..12 {
                device.cut_after(point);
                let mounted = mount(device.clone());
                let left = device.crash_states(limits());
                states += left.len();
                for state in &left {
                    let fs = mount(Arc::new(device.image(state)))
                        .unwrap_or_else(|e| panic!("{e} in round {round}, cut at {point}"));
                    assert_eq!(model.contradiction(&fs), None);
                    assert_clean(&fs);
                }
                drop(mounted);
                device = Arc::new(device.restart(&left[(round + point as usize) % left.len()]));
            }
        }
        println!("mounting: {states} states after power cuts");
    }
}

/// Writes or flushes fail from some command on, then a mount follows, and the power is cut in it. The frames that this
/// mount has replayed may have been in the drive's cache only, and then the journal before it counts again.
#[test]
fn a_mount_behind_one_that_failed() {
    let mut states = 0;
    for (g, copies) in geometries() {
        for command in [ZoneCommand::Write, ZoneCommand::Flush] {
            for kth in 1..24 {
                for point in 1..9 {
                    let drive = Arc::new(PowerCut::new(g.clone()).unwrap());
                    format_copies(&*drive, Role::Alone, copies);
                    let faulty = Arc::new(Faults::new(drive.clone()));
                    let mut pair = Pair::new(faulty.clone()).unwrap();
                    for step in [
                        Create(1),
                        Append(1, 60_000),
                        Sync(1),
                        Create(0),
                        Append(0, 90_000),
                        Sync(0),
                        Create(3),
                        Append(3, 700),
                        Sync(3),
                    ] {
                        pair.step(step).unwrap();
                    }
                    faulty.add(Plan::from(command, kth, Fault::Io(io::ErrorKind::Other)));
                    let steps = [
                        Delete(1),
                        SyncNames,
                        Create(1),
                        Append(1, 700),
                        Sync(1),
                        Delete(0),
                        SyncNames,
                    ];
                    let _ = steps.iter().all(|step| pair.step(*step).is_ok());
                    let Pair { model, fs, .. } = pair;
                    drop(fs);
                    drop(mount(faulty));
                    drive.cut_after(point);
                    drop(mount(drive.clone()));
                    for state in drive.crash_states(CrashLimits {
                        max_states: 8,
                        ..limits()
                    }) {
                        states += 1;
                        let told = |what: &str| {
                            format!(
                                "{what}, {command:?} {kth} and all behind it failed, cut at {point}, left {state:?}"
                            )
                        };
                        let fs = mount(Arc::new(drive.image(&state)))
                            .unwrap_or_else(|e| panic!("{}", told(&e.to_string())));
                        assert_eq!(model.contradiction(&fs), None, "{}", told(""));
                        assert_clean(&fs);
                    }
                }
            }
        }
    }
    println!("{states} states after power cuts");
}

#[test]
fn a_drive_without_power_is_left_alone() {
    let device = Arc::new(PowerCut::new(geometry(40, 0, 0)).unwrap());
    format(&*device, Role::Alone);
    let mut pair = Pair::new(device.clone()).unwrap();
    pair.step(Create(0)).unwrap();
    device.cut_after(0);
    pair.step(Append(0, 100)).unwrap();
    assert!(pair.step(Sync(0)).is_err());
    assert!(pair.step(SyncNames).is_err());
    assert!(device.report_zone(zone::ZoneId(0)).is_err());
}
