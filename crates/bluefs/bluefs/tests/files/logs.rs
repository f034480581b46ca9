//! Logs, also several in one zone.

use super::*;

#[test]
fn many_small_synced_appends_are_one_log() {
    let (device, fs) = fresh();
    let mut w = fs.create("/000007.log").unwrap();
    let mut model = Vec::new();
    for i in 0..700u32 {
        let piece = bytes(i as u8, 1 + (i as usize * 37) % 9000);
        w.append(&piece).unwrap();
        model.extend_from_slice(&piece);
        if i % 3 != 0 {
            w.sync().unwrap();
        }
    }
    w.sync().unwrap();
    assert!(read(&fs, "/000007.log") == model);
    let reader = fs.open("/000007.log").unwrap();
    let mut part = vec![0; 5000];
    for at in [0u64, 1, 4096, 100_001, model.len() as u64 - 10] {
        let got = reader.read_at(at, &mut part).unwrap();
        assert_eq!(
            part[..got],
            model[at as usize..(at as usize + 5000).min(model.len())]
        );
    }
    drop((w, reader, fs));
    let fs = mount(&device);
    assert!(read(&fs, "/000007.log") == model);
    assert_clean(&fs);
    // Appends continue.
    let mut w = fs.reopen("/000007.log").unwrap();
    w.append(b"more").unwrap();
    w.sync().unwrap();
    model.extend_from_slice(b"more");
    drop((w, fs));
    assert!(read(&mount(&device), "/000007.log") == model);
}

#[test]
fn two_logs_in_one_zone_are_told_apart() {
    // Six active zones, two of them the store's: ring, journal, and two for data.
    let device = formatted(geometry(0, 6));
    let fs = mount(&device);
    let mut a = fs.create("/000001.log").unwrap();
    let mut b = fs.create("/000002.log").unwrap();
    let mut c = fs.create("/x.sst").unwrap();
    let mut d = fs.create("/y.sst").unwrap();
    for i in 0..40 {
        for (w, seed) in [(&mut a, 1), (&mut b, 2), (&mut c, 3), (&mut d, 4)] {
            w.append(&bytes(seed + i, 20_000)).unwrap();
            w.sync().unwrap();
        }
    }
    let expected = |seed: u8| {
        (0..40)
            .flat_map(|i| bytes(seed + i, 20_000))
            .collect::<Vec<_>>()
    };
    drop((a, b, c, d, fs));
    let fs = mount(&device);
    for (name, seed) in [
        ("/000001.log", 1),
        ("/000002.log", 2),
        ("/x.sst", 3),
        ("/y.sst", 4),
    ] {
        assert!(read(&fs, name) == expected(seed), "{name}");
    }
    assert_clean(&fs);
}
