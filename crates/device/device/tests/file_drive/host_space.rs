use super::*;

#[test]
fn an_empty_drive_takes_little_space_and_a_reset_gives_it_back() {
    let place = place();
    let g = Geometry {
        zone_count: 1 << 12,
        zone_size: 8 << 20,
        ..geometry()
    };
    let drive = FileDrive::create(&place.path, &g, "").unwrap();
    let empty = drive.host_bytes().unwrap();
    assert!(
        (4096 + (64 << 12)..1 << 20).contains(&empty),
        "{empty} bytes for nothing"
    );
    let data = vec![1; g.zone_capacity as usize];
    for zone in [2, 3] {
        drive.write(g.start(ZoneId(zone)), &data).unwrap();
    }
    drive.flush().unwrap();
    let full = drive.host_bytes().unwrap();
    assert!(full >= empty + 2 * g.zone_capacity);
    drive.reset(ZoneId(2)).unwrap();
    drive.flush().unwrap();
    let half = drive.host_bytes().unwrap();
    assert!(
        half <= full - g.zone_capacity,
        "{half} of {full} bytes left"
    );
    assert!(half >= empty + g.zone_capacity);
}

/// What a kill leaves between a reset's entry and its hole, and in a write between data and entry.
#[test]
fn bytes_above_a_write_pointer_never_show_and_empty_zones_give_them_back() {
    let place = place();
    let g = geometry();
    let drive = FileDrive::create(&place.path, &g, "").unwrap();
    drive.write(g.start(ZoneId(3)), &[1; 4096]).unwrap();
    drop(drive);
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(&place.path)
        .unwrap();
    let in_file = |zone: u32| (1 << 20) + g.start(ZoneId(zone)).0;
    for zone in [2, 5, 11] {
        file.write_all_at(&[0xee; 1 << 16], in_file(zone)).unwrap();
    }
    file.write_all_at(&[0xee; 1 << 16], in_file(3) + 4096)
        .unwrap();
    drop(file);

    let check = |drive: &FileDrive| {
        let mut out = vec![9; 1 << 20];
        for zone in [2, 3, 5, 11] {
            drive.read(g.start(ZoneId(zone)), &mut out).unwrap();
            let written = if zone == 3 { 4096 } else { 0 };
            assert!(out[..written].iter().all(|byte| *byte == 1));
            assert!(out[written..].iter().all(|byte| *byte == 0), "zone {zone}");
        }
    };
    let reader = FileDrive::open_read_only(&place.path).unwrap();
    let before = reader.host_bytes().unwrap();
    check(&reader);
    drop(reader);
    let drive = FileDrive::open(&place.path).unwrap();
    check(&drive);
    drive.flush().unwrap();
    assert!(drive.host_bytes().unwrap() <= before - 3 * (1 << 16));
    drive.finish(ZoneId(3)).unwrap();
    check(&drive);
}

const SMALL: &str = "ZONESTORE_TEST_SMALL_DISK";
/// What the test itself answers: one that was not run answers 0.
const DONE: i32 = 3;

/// A page of a mapping that finds no block on the disk would end the process. In a mount of its own, where the
/// host lets us have one; or in the directory that the variable names.
#[test]
fn what_is_beside_the_drive_meets_a_full_disk_of_the_host() {
    if let Some(directory) = std::env::var_os(SMALL) {
        fill_a_disk(Path::new(&directory));
        std::process::exit(DONE);
    }
    let place = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs -o size=3m none \"$0\" || exit 77
        {SMALL}=\"$0\" exec \"$1\" what_is_beside_the_drive_meets_a_full_disk_of_the_host"
    );
    let status = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", &script])
        .arg(place.path())
        .arg(std::env::current_exe().unwrap())
        .status();
    // The harness of a failed test answers 101, and a signal has no code.
    match status.map(|status| status.code()) {
        Ok(Some(DONE)) => {}
        Ok(code) if code.is_none_or(|code| [0, 101].contains(&code)) => panic!("{code:?}"),
        other => eprintln!("left out: no mounts of our own ({other:?})"),
    }
}

fn fill_a_disk(directory: &Path) {
    let path = directory.join("a.zoned");
    let drive = FileDrive::create(&path, &geometry(), "test-small").unwrap();
    let memory = drive.host_memory().unwrap();
    let piece = |n: u64, round: u64| {
        let bytes = (0..1000).map(|at| (n + at + round) as u8 | 1);
        bytes.collect::<Vec<_>>()
    };
    // Of the first stretch only the first page is used when the disk gets full.
    memory.write(0, &piece(0, 0)).unwrap();
    let ballast = File::create(directory.join("ballast")).unwrap();
    let mut length = 0;
    while ballast.write_all_at(&[1; 4096], length).is_ok() {
        length += 4096;
    }
    let mut written = 1;
    let error = loop {
        match memory.write(written * 1000, &piece(written, 0)) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    assert!(written > 2, "{written}");
    for round in 1..4 {
        for n in 0..written {
            memory.write(n * 1000, &piece(n, round)).unwrap();
        }
        let beside = directory.join("a.zoned.unsynced");
        File::open(beside).unwrap().sync_all().unwrap();
        let left = memory.left_behind().unwrap().unwrap();
        for n in 0..written {
            assert!(left[n as usize * 1000..][..1000] == piece(n, round));
        }
    }
    // There is room again.
    ballast.set_len(0).unwrap();
    memory.write(written * 1000, &piece(written, 0)).unwrap();
    memory.clear().unwrap();
    assert!(memory.left_behind().unwrap().is_none());
}
