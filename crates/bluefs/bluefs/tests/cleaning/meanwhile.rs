//! Changes to files while they are copied.

use super::*;

/// With the zone of `/old.sst`.
fn held_up(meanwhile: impl FnOnce(&BlueFs)) -> (BlueFs, ZoneId) {
    held_up_in(mostly_dead, meanwhile)
}

#[test]
fn everybody_goes_on_while_a_zone_is_copied() {
    let (fs, zone) = held_up(|fs| {
        write(fs, "/new.sst", &[3; 50_000]).unwrap();
        write(fs, "/000001.log", &[4; 500]).unwrap();
        let mut old = fs.reopen("/old.sst").unwrap();
        old.append(&[5; 700]).unwrap();
        old.sync().unwrap();
        fs.rename("/old.sst", "/renamed.sst").unwrap();
        fs.sync_metadata().unwrap();
    });
    // None of that changes the copied extent.
    assert_ne!(zone_of(&fs, "/renamed.sst"), zone);
    let data = read(&fs, "/renamed.sst").unwrap();
    assert!(data[..5000] == [1; 5000] && data[5000..] == [5; 700]);
    goes_on(&fs, zone);
}

#[test]
fn the_copy_of_a_file_that_was_deleted_is_dropped() {
    let (fs, zone) = held_up(|fs| {
        fs.delete("/old.sst").unwrap();
        fs.sync_metadata().unwrap();
        write(fs, "/old.sst", &[6; 5000]).unwrap();
    });
    assert!(read(&fs, "/old.sst").unwrap() == [6; 5000]);
    goes_on(&fs, zone);
}

#[test]
fn the_copy_of_a_file_that_was_cut_is_dropped() {
    for size in [4999, 512, 0] {
        let (fs, zone) = held_up(|fs| {
            let mut old = fs.reopen("/old.sst").unwrap();
            old.truncate(size).unwrap();
            old.append(&[7; 9000]).unwrap();
            old.sync().unwrap();
        });
        let data = read(&fs, "/old.sst").unwrap();
        let (kept, new) = data.split_at(size as usize);
        assert!(kept.iter().all(|b| *b == 1) && new == [7; 9000], "{size}");
        goes_on(&fs, zone);
    }
}

#[test]
fn a_reader_that_is_open_sees_the_same_bytes_before_and_after() {
    let mut reader = None;
    let (fs, zone) = held_up(|fs| reader = Some(fs.open("/old.sst").unwrap()));
    let mut data = vec![0; 5000];
    assert_eq!(reader.unwrap().read_at(0, &mut data).unwrap(), 5000);
    assert!(data == [1; 5000]);
    goes_on(&fs, zone);
}

#[test]
fn a_log_that_changes_while_it_is_copied_loses_nothing() {
    let name = "/000001.log";
    let (fs, zone) = held_up_in(old_log, |fs| append(&mut fs.reopen(name).unwrap(), 5));
    has(&fs, name, 65 * 90);
    assert_ne!(zone_of(&fs, name), zone);
    goes_on(&fs, zone);
    let (fs, zone) = held_up_in(old_log, |fs| {
        let mut log = fs.reopen(name).unwrap();
        log.truncate(1000).unwrap();
        log.sync().unwrap();
        append(&mut log, 5);
    });
    has(&fs, name, 1450);
    goes_on(&fs, zone);
    let (fs, zone) = held_up_in(old_log, |fs| {
        fs.delete(name).unwrap();
        fs.sync_metadata().unwrap();
        append(&mut fs.create(name).unwrap(), 5);
    });
    has(&fs, name, 450);
    goes_on(&fs, zone);
}

#[test]
fn a_zone_that_somebody_is_emptying_is_left_to_them() {
    let (fs, zone) = held_up(|fs| assert!(!fs.clean_ahead().unwrap()));
    goes_on(&fs, zone);
}
