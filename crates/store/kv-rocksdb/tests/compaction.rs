//! How many bytes a compaction may take.

#![allow(clippy::unwrap_used)]

mod support;

use bluefs::BlueFs;
use kv::{Batch, Durability, Kv, Options};
use kv_rocksdb::RocksDb;
use support::{drive_of, format, formatted, geometry, mount};
use zone::Geometry;

const ROW_BYTES: usize = 4000;
/// Rows in the last level. The level above keeps a tenth of their bytes, and passes on what is more.
const BELOW: u32 = 16_000;
const BETWEEN: u32 = 3 * BELOW / 16;
const LEVEL_0: &str = "rocksdb.num-files-at-level0";
const ABOVE_THE_LAST: &str = "rocksdb.num-files-at-level5";

fn open(fs: &BlueFs) -> Kv {
    let options = Options {
        write_buffer_bytes: 64 << 10,
        target_file_bytes: 64 << 10,
        max_compaction_bytes: 512 << 10,
        ..support::options()
    };
    Kv::open(&RocksDb, fs, "/db", &options, None).unwrap()
}

/// Level 0 is compacted as a whole.
#[test]
fn writers_wait_before_level_0_comes_to_more_than_a_compaction_may_take() {
    let drive = formatted();
    let fs = mount(&drive);
    let kv = open(&fs);
    let mut dice = fastrand::Rng::with_seed(1);
    let mut most = 0;
    for _ in 0..400 {
        let mut batch = Batch::default();
        for _ in 0..16 {
            batch.put(
                format!("k{:08}", dice.u32(0..4000)).as_bytes(),
                &[1; ROW_BYTES],
            );
        }
        kv.write(&batch, Durability::Buffered).unwrap();
        most = kv
            .property(LEVEL_0)
            .unwrap()
            .parse()
            .unwrap_or(0u32)
            .max(most);
    }
    println!("{most} SSTs");
    assert!((1..=11).contains(&most), "{most}");
}

/// All of the upper level lies between two keys of one SST below. A compaction that takes all of it at once, because
/// nothing more below has to be rewritten, would need ten times the bound.
#[test]
fn a_compaction_takes_no_more_of_the_upper_level_than_it_may() {
    let drive = drive_of(Geometry {
        zone_count: 160,
        ..geometry()
    });
    format(&*drive);
    let fs = mount(&drive);
    let kv = open(&fs);
    let put = |group: u8, number: u32| {
        let mut batch = Batch::default();
        let key = format!("k{group}{number:08}");
        batch.put(key.as_bytes(), &[number as u8; ROW_BYTES]);
        kv.write(&batch, Durability::Buffered).unwrap();
    };
    for number in 0..BELOW {
        let group = if number < BELOW / 2 { 1 } else { 9 };
        put(group, number);
    }
    kv.compact().unwrap();
    let (mut most, mut least) = (0usize, 0);
    for number in 0..BETWEEN {
        put(5, number);
        let files = kv.property(ABOVE_THE_LAST).unwrap().parse().unwrap();
        if files > most {
            (most, least) = (files, files);
        }
        least = least.min(files);
    }
    println!("{most} SSTs, then {least}");
    assert!(most > 20, "{most}");
    // While RocksDB's threads do not run the level comes to more than it keeps, and all of that goes then.
    let kept = BELOW as usize * ROW_BYTES / 10 / (72 << 10);
    let before = most.min(kept);
    assert!(2 * least >= before, "of {before} SSTs there are {least}");
}
