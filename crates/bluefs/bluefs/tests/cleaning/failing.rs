//! Zones that cannot be read or written.

use super::*;

#[test]
fn damaged_records_are_not_moved() {
    let device = formatted();
    let fs = mount(device.clone()).unwrap();
    old_log(&fs);
    let at = fs.extents("/000001.log").unwrap()[20].at;
    let start = device.geometry().start(at.zone);
    let mut bytes = vec![0; 24 << 10];
    device.read(start, &mut bytes).unwrap();
    bytes[at.offset as usize] ^= 1;
    device.reset(at.zone).unwrap();
    device.write(start, &bytes).unwrap();
    fs.clean_ahead().unwrap();
    assert!(!fs.clean_ahead().unwrap(), "it is not tried again");
    assert_eq!(fs.extents("/000001.log").unwrap()[20].at, at);
    assert!(!fs.check(true).unwrap().is_clean());
}

#[test]
fn a_zone_that_breaks_under_a_copy_is_left_for_another() {
    for kth in 1..4 {
        let device = Arc::new(Faults::new(formatted()));
        let fs = mount(device.clone()).unwrap();
        let zone = mostly_dead(&fs);
        let fault = Fault::Io(std::io::ErrorKind::Other);
        device.add(Plan::at(ZoneCommand::Write, kth, fault));
        assert!(fs.clean_ahead().unwrap());
        assert_ne!(zone_of(&fs, "/old.sst"), zone, "{kth}");
        goes_on(&fs, zone);
    }
}

#[test]
fn what_cannot_be_read_stays_where_it_is_and_is_not_tried_again() {
    let device = Arc::new(Faults::new(formatted()));
    let fs = mount(device.clone()).unwrap();
    let zone = mostly_dead(&fs);
    let fault = Fault::Io(std::io::ErrorKind::Other);
    device.add(Plan::from(ZoneCommand::Read, 1, fault).in_zone(zone));
    fs.clean_ahead().unwrap();
    assert_eq!(zone_of(&fs, "/old.sst"), zone);
    assert!(!fs.clean_ahead().unwrap());
    // Nor is it read again when writers need space.
    let before = device.struck();
    write(&fs, "/new.sst", &[3; 600_000]).unwrap();
    while write(&fs, &format!("/{}.sst", fs.usage().files), &[4; 20_000]).is_ok() {}
    assert_eq!(device.struck(), before);
    device.clear();
    assert!(read(&fs, "/old.sst").unwrap() == [1; 5000]);
    goes_on_reading(&fs);
}

#[test]
fn a_drive_that_reads_nothing_for_a_moment_keeps_no_zone_from_being_emptied_later() {
    let device = Arc::new(Faults::new(formatted()));
    let fs = mount(device.clone()).unwrap();
    let zone = mostly_dead(&fs);
    let fault = Fault::Io(std::io::ErrorKind::Other);
    device.add(Plan::from(ZoneCommand::Read, 1, fault));
    let error = fs.clean_ahead().unwrap_err();
    assert!(matches!(error, bluefs::Error::Drive(_)), "{error}");
    device.clear();
    assert!(fs.clean_ahead().unwrap());
    assert_ne!(zone_of(&fs, "/old.sst"), zone);
    goes_on(&fs, zone);
}

fn goes_on_reading(fs: &BlueFs) {
    assert!(read(fs, "/new.sst").unwrap() == [3; 600_000]);
    assert_clean(fs);
}
