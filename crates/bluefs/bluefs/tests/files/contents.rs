//! The content of files after a crash, a truncation and a removal.

use super::*;

#[test]
fn synced_files_of_all_sizes_and_kinds_survive_a_crash() {
    let device = formatted(geometry(4, 0));
    let names = ["/a.sst", "/000001.log", "/MANIFEST-000001"];
    for size in [0, 1, 4095, 4096, 4097, 70_000, 1 << 20, 2_500_000] {
        let fs = mount(&device);
        for name in names {
            put(&fs, name, &bytes(size as u8, size));
        }
        drop(fs);
        device.power_cycle();
        let fs = mount(&device);
        for name in names {
            assert!(
                read(&fs, name) == bytes(size as u8, size),
                "{name} with {size} bytes"
            );
        }
        assert_clean(&fs);
    }
}

#[test]
fn a_deleted_file_stays_readable_while_it_is_open_and_then_gives_its_zones_back() {
    let (_device, fs) = fresh();
    let before = fs.usage();
    put(&fs, "/x.sst", &bytes(1, 3 << 20));
    let r = fs.open("/x.sst").unwrap();
    fs.delete("/x.sst").unwrap();
    fs.sync_metadata().unwrap();
    let mut data = vec![0; 3 << 20];
    assert_eq!(r.read_at(0, &mut data).unwrap(), data.len());
    assert!(data == bytes(1, 3 << 20));
    drop(r);
    fs.sync_metadata().unwrap();
    let after = fs.usage();
    assert_eq!(after.live_bytes, before.live_bytes);
    assert!(after.free_bytes + (1 << 20) >= before.free_bytes);
}

#[test]
fn what_was_not_synced_may_be_lost_but_what_was_is_there() {
    let (device, fs) = fresh();
    let mut w = fs.create("/a.sst").unwrap();
    w.append(&bytes(1, 10_000)).unwrap();
    w.sync().unwrap();
    w.append(&bytes(2, 5_000)).unwrap();
    assert_eq!(read(&fs, "/a.sst").len(), 15_000);
    drop((w, fs));
    let fs = mount(&device);
    assert_eq!(read(&fs, "/a.sst"), bytes(1, 10_000));
}

#[test]
fn truncating_cuts_logs_and_plain_files_for_good() {
    let (device, fs) = fresh();
    for name in ["/t.sst", "/000003.log"] {
        let mut w = fs.create(name).unwrap();
        for i in 0..5 {
            w.append(&bytes(i, 50_000)).unwrap();
            w.sync().unwrap();
        }
        let all = read(&fs, name);
        w.truncate(123_456).unwrap();
        assert!(read(&fs, name) == all[..123_456]);
        w.append(b"tail").unwrap();
        w.sync().unwrap();
        drop(w);
        let again = mount(&device.snapshot().into());
        assert!(
            read(&again, name) == [&all[..123_456], b"tail"].concat(),
            "{name}"
        );
    }
    fs.truncate("/t.sst", 10).unwrap();
    assert_eq!(read(&fs, "/t.sst").len(), 10);
    assert_clean(&fs);
}
