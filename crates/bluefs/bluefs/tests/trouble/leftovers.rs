//! Bytes of an earlier file system or file on the drive never appear in new files.

use super::*;

#[test]
fn formatting_twice_with_one_uuid_brings_nothing_back() {
    for conventional in [0, 40] {
        let device = formatted(geometry(40, conventional, 0));
        let fs = mount(device.clone()).unwrap();
        for i in 0..5 {
            write(&fs, &format!("/{i:06}.log"), &[i; 5000]).unwrap();
        }
        drop(fs);
        let options = FormatOptions {
            uuid: [3; 16],
            role: Role::Alone,
            copies: 1,
            force: true,
        };
        BlueFs::format(&*device, &options).unwrap();
        let fs = mount(device.clone()).unwrap();
        assert!(fs.list("/").unwrap().is_empty());
        let mut writer = fs.create("/000001.log").unwrap();
        writer.append(&[9; 100]).unwrap();
        writer.sync().unwrap();
        drop((writer, fs));
        let fs = mount(device).unwrap();
        assert_eq!(fs.list("/").unwrap(), ["000001.log"]);
        assert_eq!(read(&fs, "/000001.log").unwrap(), [9; 100]);
    }
}

#[test]
fn a_log_never_shows_what_an_earlier_file_left_in_a_conventional_zone() {
    // The first log writes two whole records and is never journaled, so that the second log gets its inode and, after a
    // few mounts, its place. The first record of the second log is as long as the stale one.
    let mut g = geometry(12, 12, 0);
    g.zone_size = 4 << 20;
    g.zone_capacity = 4 << 20;
    const RECORD: usize = bluefs::format::log_record::MAX_PAYLOAD;
    for mounts in 0..4 {
        let device = formatted(g.clone());
        let fs = mount(device.clone()).unwrap();
        let mut writer = fs.create("/000001.log").unwrap();
        writer.append(&vec![1; 2 * RECORD]).unwrap();
        drop((writer, fs));
        for _ in 0..mounts {
            mount(device.clone()).unwrap();
        }
        let fs = mount(device.clone()).unwrap();
        let mut writer = fs.create("/000002.log").unwrap();
        writer.append(&vec![2; RECORD]).unwrap();
        writer.sync().unwrap();
        drop((writer, fs));
        let data = read(&mount(device).unwrap(), "/000002.log").unwrap();
        assert!(
            data == vec![2; RECORD],
            "{} bytes after {mounts} mounts",
            data.len()
        );
    }
}
