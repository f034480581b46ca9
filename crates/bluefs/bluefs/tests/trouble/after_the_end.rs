//! Calls after an unmount, after a failed flush, and after a power loss.

use super::*;

#[test]
fn after_unmounting_a_writer_that_is_still_open_touches_nothing() {
    let device = formatted(geometry(40, 0, 0));
    let fs = mount(device.clone()).unwrap();
    let mut writer = fs.create("/000001.log").unwrap();
    writer.append(b"synced").unwrap();
    writer.sync().unwrap();
    writer.append(b" and not").unwrap();
    fs.unmount().unwrap();
    let before = device.report(ZoneId(0), 40).unwrap();
    assert!(matches!(writer.append(b"late"), Err(Error::Unmounted)));
    assert!(matches!(writer.sync(), Err(Error::Unmounted)));
    assert!(matches!(writer.close(), Err(Error::Unmounted)));
    drop(writer);
    assert_eq!(before, device.report(ZoneId(0), 40).unwrap());
    assert_eq!(
        read(&mount(device).unwrap(), "/000001.log").unwrap(),
        b"synced and not"
    );
}

#[test]
fn a_failed_flush_is_never_made_good_by_the_next() {
    let device = Arc::new(Faults::new(formatted(geometry(40, 0, 0))));
    let fs = mount(device.clone()).unwrap();
    let mut a = fs.create("/000001.log").unwrap();
    a.append(b"a").unwrap();
    a.sync().unwrap();
    device.add(Plan::at(
        ZoneCommand::Flush,
        1,
        Fault::Io(std::io::ErrorKind::Other),
    ));
    a.append(b"b").unwrap();
    assert!(matches!(a.sync(), Err(Error::Drive(ZoneError::Io { .. }))));
    assert!(a.sync().is_err());
    assert!(fs.sync_metadata().is_err());
    assert!(fs.create("/x").is_err());
    drop((a, fs));
    let data = read(&mount(device).unwrap(), "/000001.log").unwrap();
    assert!(b"ab".starts_with(&data[..]) && !data.is_empty());
}

#[test]
fn a_log_of_messages_goes_on_when_the_drive_does_not() {
    // RocksDB appends to its info log after all other writes have failed, and aborts if that fails.
    let device = Arc::new(PowerCut::new(geometry(40, 0, 0)).unwrap());
    format(&*device, Role::Alone);
    let fs = mount(device.clone()).unwrap();
    let mut messages = fs.create("/LOG").unwrap();
    let mut log = fs.create("/000001.log").unwrap();
    device.cut_after(0);
    log.append(b"x").unwrap();
    assert!(log.sync().is_err());
    for _ in 0..100 {
        messages.append(b"the drive has no power").unwrap();
        messages.flush().unwrap();
    }
    assert!(messages.sync().is_err());
}
