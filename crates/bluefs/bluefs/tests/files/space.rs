//! Space that is used up and freed: the journal's zones and those of deleted files.

use super::*;

#[test]
fn the_journal_is_compacted_and_its_zones_come_back() {
    let (device, fs) = fresh();
    for i in 0..4000 {
        put(&fs, &format!("/f{}", i % 7), &bytes(i as u8, 10));
    }
    let s = fs.statistics();
    assert!(s.journal_bytes_written > 4 << 20, "{s:?}");
    assert!(fs.zones().len() < 20, "{:?}", fs.zones());
    assert_clean(&fs);
    drop(fs);
    let fs = mount(&device);
    assert_eq!(read(&fs, "/f0"), bytes((3999 / 7 * 7) as u8, 10));
}

#[test]
fn deleting_and_filling_never_runs_out_early() {
    let (device, fs) = fresh();
    let mut model: std::collections::VecDeque<(String, u8, usize)> = Default::default();
    let mut live = 0;
    for i in 0..600usize {
        let size = 40_000 + (i * 7919) % 500_000;
        while live + size > 38 << 20 {
            let at = (i * 31) % model.len();
            let (name, _, s) = model.remove(at).unwrap();
            fs.delete(&name).unwrap();
            live -= s;
        }
        let name = format!("/{i:06}.sst");
        let mut w = fs.create(&name).unwrap();
        w.set_lifetime([Lifetime::Medium, Lifetime::Long][i % 2]);
        w.append(&bytes(i as u8, size)).unwrap();
        w.sync().unwrap();
        w.close().unwrap();
        model.push_back((name, i as u8, size));
        live += size;
    }
    for (name, seed, size) in &model {
        assert!(read(&fs, name) == bytes(*seed, *size));
    }
    assert!(fs.statistics().moved_bytes_written > 0);
    assert_clean(&fs);
    drop(fs);
    assert_clean(&mount(&device));
}

#[test]
fn a_full_drive_says_so_and_deleting_helps() {
    let (_device, fs) = fresh();
    let mut i = 0;
    let error = loop {
        let mut w = fs.create(&format!("/{i:06}.sst")).unwrap();
        if let Err(error) = w.append(&bytes(0, 1 << 20)).and_then(|()| w.sync()) {
            break error;
        }
        i += 1;
    };
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    assert!(i >= 53, "{i} files of 1 MiB on 64 zones");
    for j in 0..10 {
        fs.delete(&format!("/{j:06}.sst")).unwrap();
    }
    put(&fs, "/again.sst", &bytes(5, 6 << 20));
    assert_clean(&fs);
}
