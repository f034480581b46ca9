//! Data written to files of short lifetime is put into the cache, if asked for.

use super::*;

#[test]
fn young_files_are_read_from_memory_if_what_is_written_is_kept() {
    let device = Arc::new(device::stats::Stats::new(
        MemoryDrive::new(geometry()).unwrap(),
    ));
    let fs = mounted_with(device.clone(), 4 << 20, true);
    let content = Numbers(7).bytes(300_000);
    for (lifetime, is_kept) in [
        (Lifetime::Unknown, true),
        (Lifetime::Medium, true),
        (Lifetime::Long, false),
        (Lifetime::Extreme, false),
    ] {
        let mut writer = fs.create("/a.sst").unwrap();
        writer.set_lifetime(lifetime);
        // The second part begins in the middle of a run, so that run is not cached.
        let (first, second) = content.split_at(290_000);
        writer.append(first).unwrap();
        writer.sync().unwrap();
        writer.append(second).unwrap();
        writer.sync().unwrap();
        let before = device.snapshot().read.operations;
        let reader = fs.open("/a.sst").unwrap();
        for at_once in [4096, 270_000] {
            let mut buffer = vec![0; at_once];
            for at in (0..270_000).step_by(at_once) {
                let got = reader.read_at(at as u64, &mut buffer).unwrap();
                assert!(buffer[..got] == content[at..at + got], "{at} of {at_once}");
            }
        }
        let reads = device.snapshot().read.operations - before;
        assert_eq!(reads == 0, is_kept, "{lifetime:?}: {reads} reads");
        let mut all = vec![0; content.len()];
        assert_eq!(reader.read_at(0, &mut all).unwrap(), content.len());
        assert!(all == content);
    }
}
