//! Cleaning of logs: old records of an open log are moved together, and the log continues after a mount.

use super::*;

#[test]
fn a_manifest_that_is_open_does_not_keep_its_old_zones() {
    let device = formatted();
    let fs = mount(device.clone()).unwrap();
    let mut log = fs.create("/MANIFEST-000001").unwrap();
    append(&mut log, 500);
    let zones = |fs: &BlueFs| {
        let logs = fs.zones();
        let logs = logs.iter().filter(|(_, p)| *p == bluefs::ZonePurpose::Log);
        logs.count()
    };
    assert_eq!(zones(&fs), 11);
    // The budget grows with the bytes written.
    for _ in 0..2 {
        while fs.clean_ahead().unwrap() {}
        append(&mut log, 10);
    }
    // 43,200 bytes of old records fit into two zones; the third is being written.
    assert_eq!(zones(&fs), 3);
    has(&fs, "/MANIFEST-000001", 46_800);
    assert_clean(&fs);
    append(&mut log, 80);
    while fs.clean_ahead().unwrap() {}
    has(&fs, "/MANIFEST-000001", 54_000);
    let reader = fs.open("/MANIFEST-000001").unwrap();
    fs.delete("/MANIFEST-000001").unwrap();
    assert_eq!(reader.size(), 54_000);
    fs.create("/MANIFEST-000001").unwrap();
    drop((log, reader));
    let mut log = fs.create("/MANIFEST-000002").unwrap();
    append(&mut log, 200);
    log.close().unwrap();
    assert!(fs.clean_ahead().unwrap());
    for _ in 0..2 {
        let fs = mount(device.clone()).unwrap();
        has(&fs, "/MANIFEST-000002", 18_000);
        assert_clean(&fs);
        // The log continues after the moved records, which are then moved again.
        while fs.clean_ahead().unwrap() {}
        let mut log = fs.reopen("/MANIFEST-000002").unwrap();
        append(&mut log, 100);
        log.truncate(18_000).unwrap();
        log.sync().unwrap();
        has(&fs, "/MANIFEST-000002", 18_000);
    }
}

#[test]
fn logs_that_share_zones_are_moved_one_by_one() {
    let device = support::formatted(geometry(60, 0, 6));
    let fs = mount(device.clone()).unwrap();
    let names = [
        "/000001.log",
        "/000002.log",
        "/MANIFEST-000003",
        "/000004.log",
    ];
    let mut logs: Vec<_> = names.iter().map(|n| fs.create(n).unwrap()).collect();
    for round in 1..=20 {
        for log in &mut logs {
            append(log, 9);
        }
        while fs.clean_ahead().unwrap() {}
        for name in names {
            has(&fs, name, round * 9 * 90);
        }
        assert_clean(&fs);
        let again = mount(Arc::new(device.snapshot())).unwrap();
        for name in names {
            has(&again, name, round * 9 * 90);
        }
        assert_clean(&again);
    }
    let s = fs.statistics();
    assert!(s.zones_cleaned_ahead > 5, "{s:?} {:?}", fs.zones());
    assert!(fs.usage().live_bytes < s.log_bytes_written / 2, "{s:?}");
}

/// With few active zones, the mover and the log's writer write to the same zone. Moved records must not get into the
/// segment that the writer begins meanwhile: the next mount would take the segment to end there.
#[test]
fn a_log_goes_on_behind_what_is_moved_of_it_into_its_own_run() {
    let device = Arc::new(Faults::new(support::formatted(geometry(60, 0, 4))));
    let fs = mount(device.clone()).unwrap();
    let mut log = fs.create("/1.log").unwrap();
    let mut expected = Vec::new();
    let mut go_on = |log: &mut Writer, bytes: u8| {
        expected.extend([bytes; 300]);
        log.append(&[bytes; 300]).unwrap();
        log.sync().unwrap();
    };
    for _ in 0..10 {
        go_on(&mut log, 1);
    }
    // A run in which the journal does not name the log yet.
    fs.close_sequential_zones().unwrap();
    let gate = Gate::new();
    device.add(Plan::at(ZoneCommand::Write, 1, Fault::Stuck(gate.clone())));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            go_on(&mut log, 2);
            go_on(&mut log, 3);
        });
        gate.wait_until_stuck(1);
        let mover = scope.spawn(|| fs.leave_sequential_zone());
        std::thread::sleep(std::time::Duration::from_millis(100));
        gate.release();
        assert!(mover.join().unwrap().unwrap());
        writer.join().unwrap();
    });
    go_on(&mut log, 4);
    assert!(fs.statistics().moved_bytes_written > 0);
    drop(log);
    drop(fs);
    let fs = mount(device).unwrap();
    assert!(read(&fs, "/1.log").unwrap() == expected);
    assert_clean(&fs);
}
