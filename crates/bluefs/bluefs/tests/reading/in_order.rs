//! Reads in order: few commands, and no space in the cache.

use super::*;

#[test]
fn reads_in_order_leave_the_cache_to_others_and_need_few_commands() {
    let device = Arc::new(device::stats::Stats::new(
        MemoryDrive::new(geometry()).unwrap(),
    ));
    let fs = mounted(device.clone(), BUDGET);
    let content = Numbers(7).bytes(1 << 20);
    let mut writer = fs.create("/a.sst").unwrap();
    writer.append(&content).unwrap();
    writer.sync().unwrap();
    drop(writer);
    let reader = fs.open("/a.sst").unwrap();
    let mut buffer = vec![0; 4096];
    let commands = device.snapshot().read.operations;
    for at in (0..content.len()).step_by(4096) {
        reader.read_at(at as u64, &mut buffer).unwrap();
        assert!(buffer == content[at..at + 4096]);
    }
    let commands = device.snapshot().read.operations - commands;
    // Each of 256 KiB at most, the zone size, from up to two zones.
    assert!(commands < 20, "{commands}");
    assert!(fs.statistics().cache.held_bytes < 40 << 10);
    // Nor do uncached reads.
    let direct = reader.uncached();
    let before = fs.statistics().cache.held_bytes;
    for at in [900_000, 100_000, 500_000, 300_000] {
        direct.read_at(at, &mut buffer).unwrap();
    }
    assert_eq!(fs.statistics().cache.held_bytes, before);
    fs.delete("/a.sst").unwrap();
    drop(direct);
    assert_eq!(fs.statistics().cache.held_bytes, 0);
}
