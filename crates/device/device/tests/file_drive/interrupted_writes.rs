use super::*;

/// Not a test of its own: may not write the file beyond block 2 of zone 5, and is killed by the
/// kernel (SIGXFSZ) in the middle of a write that does.
#[test]
fn victim_of_a_limit() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let Ok(path) = std::env::var(LIMITED_VICTIM) else {
        return;
    };
    let drive = FileDrive::open(path).unwrap();
    let at = geometry().start(ZoneId(5));
    drive.write(at, &[1; 4096]).unwrap();
    let limit = (1 << 20) + at.0 + 2 * 4096;
    let fsize = Rlimit {
        current: Some(limit),
        maximum: Some(limit),
    };
    setrlimit(Resource::Fsize, fsize).unwrap();
    let _ = drive.write(ByteOffset(at.0 + 4096), &[2; 4 * 4096]);
    println!("not reached");
}

const LIMITED_VICTIM: &str = "DEVICE_TEST_LIMITED_VICTIM";

#[test]
fn a_process_killed_between_data_and_entry_has_not_written() {
    use std::os::unix::process::ExitStatusExt;
    let place = place();
    drop(FileDrive::create(&place.path, &geometry(), "").unwrap());
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(only("interrupted_writes::victim_of_a_limit"))
        .env(LIMITED_VICTIM, &place.path)
        .current_dir(place.path.parent().unwrap())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.signal().is_some(), "{told}");
    assert!(!told.contains("not reached"), "{told}");
    let drive = FileDrive::open(&place.path).unwrap();
    let zone = drive.report_zone(ZoneId(5)).unwrap();
    assert_eq!(
        (zone.condition, zone.write_pointer),
        (ZoneCondition::Closed, 4096)
    );
    let mut out = vec![9; 3 * 4096];
    drive.read(geometry().start(ZoneId(5)), &mut out).unwrap();
    assert_eq!(out, [vec![1; 4096], vec![0; 8192]].concat());
}

/// Not a test of its own: a write fails for it in the middle, in a zone whose data tells how far it is
/// written, and it goes on.
#[test]
fn victim_that_goes_on() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let Ok(path) = std::env::var(FAILING_VICTIM) else {
        return;
    };
    let drive = FileDrive::open(path).unwrap();
    let at = geometry().start(ZoneId(5)).0;
    for block in 0..4 {
        drive
            .write(ByteOffset(at + block * 4096), &[1; 4096])
            .unwrap();
        drive.flush().unwrap();
    }
    let limit = (1 << 20) + at + 6 * 4096;
    let fsize = Rlimit {
        current: Some(limit),
        maximum: Some(limit),
    };
    setrlimit(Resource::Fsize, fsize).unwrap();
    drive
        .write(ByteOffset(at + 4 * 4096), &[2; 4 * 4096])
        .unwrap_err();
    assert_eq!(
        drive.report_zone(ZoneId(5)).unwrap().write_pointer,
        4 * 4096
    );
    println!("went on");
}

const FAILING_VICTIM: &str = "DEVICE_TEST_FAILING_VICTIM";

#[test]
fn a_write_that_failed_in_the_middle_does_not_tell_of_itself() {
    let place = place();
    drop(FileDrive::create(&place.path, &geometry(), "").unwrap());
    let output = std::process::Command::new("sh")
        // What is ignored stays so: the write fails instead of killing.
        .args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(only("interrupted_writes::victim_that_goes_on"))
        .env(FAILING_VICTIM, &place.path)
        .current_dir(place.path.parent().unwrap())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("went on"), "{told}");
    let drive = FileDrive::open(&place.path).unwrap();
    let zone = drive.report_zone(ZoneId(5)).unwrap();
    assert_eq!(zone.write_pointer, 4 * 4096);
}
