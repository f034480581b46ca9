//! Many threads that read, write, sync and delete at once.

use super::*;

#[test]
fn readers_do_not_keep_zones_from_being_reset() {
    let device = formatted(geometry(60, 0, 0));
    let fs = mount(device).unwrap();
    write(&fs, "/read.sst", &[7; 20_000]).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let reader = fs.open("/read.sst").unwrap();
                let mut data = vec![0; 20_000];
                while !stop.load(Ordering::Relaxed) {
                    assert_eq!(reader.read_at(0, &mut data).unwrap(), 20_000);
                }
            });
        }
        for i in 0..200 {
            write(&fs, "/again.sst", &[i as u8; 24_000]).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(fs.statistics().resets > 100);
}

#[test]
fn many_threads_write_sync_delete_and_read() {
    let mut g = geometry(300, 4, 14);
    g.block_size = 4096;
    g.zone_size = 256 << 10;
    g.zone_capacity = 192 << 10;
    let device = formatted(g);
    let fs = mount(device.clone()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..6u8 {
            let fs = &fs;
            scope.spawn(move || {
                for round in 0..30u8 {
                    let name = match thread % 2 {
                        0 => format!("/{thread:03}{round:03}.log"),
                        _ => format!("/{thread:03}{round:03}.sst"),
                    };
                    let mut writer = fs.create(&name).unwrap();
                    let mut expected = Vec::new();
                    for i in 0..10u8 {
                        let data = vec![thread ^ round ^ i; 3000 + 1000 * usize::from(i)];
                        writer.append(&data).unwrap();
                        expected.extend(data);
                        if i % 3 == 0 {
                            writer.sync().unwrap();
                        }
                        assert!(read(fs, &name).unwrap() == expected);
                    }
                    writer.sync().unwrap();
                    writer.close().unwrap();
                    if round >= 3 {
                        let old =
                            name.replace(&format!("{round:03}."), &format!("{:03}.", round - 3));
                        fs.delete(&old).unwrap();
                    }
                }
            });
        }
    });
    fs.sync_metadata().unwrap();
    assert_clean(&fs);
    let before: Vec<_> = fs.list("/").unwrap();
    assert_eq!(before.len(), 18);
    drop(fs);
    let fs = mount(device).unwrap();
    assert_eq!(fs.list("/").unwrap(), before);
    assert_clean(&fs);
}
