//! Power cuts at every command of a history; each state that a cut may leave is opened, as far as the budget goes. All
//! rows acknowledged as durable are there, and the rows are a prefix of the history. `ZONESTORE_CRASH_STATES=n` checks
//! n states for each cut.

use crate::support::*;
use bluefs::BlueFs;
use device::power_cut::{CrashLimits, PowerCut};
use kv::{Durability, Result};
use std::sync::Arc;

#[derive(Clone, Copy, Debug)]
enum Op {
    Put(usize),
    SyncPut(usize),
    Flush,
    Reopen,
}

use Op::{Flush, Put, Reopen, SyncPut};

/// Number of writes acknowledged as durable, and number of writes begun, which may be there too.
#[derive(Default)]
struct Told {
    durable: u32,
    written: u32,
}

fn run(fs: &BlueFs, history: &[Op], told: &mut Told) -> Result<()> {
    let mut kv = open(fs)?;
    for op in history {
        match *op {
            Put(size) => {
                told.written += 1;
                kv.write(&numbered(told.written - 1, size), Durability::Buffered)?;
            }
            SyncPut(size) => {
                told.written += 1;
                kv.write(&numbered(told.written - 1, size), Durability::Synced)?;
                told.durable = told.written;
            }
            Flush => {
                kv.flush()?;
                told.durable = told.written;
            }
            Reopen => {
                kv.close()?;
                kv = open(fs)?;
            }
        }
    }
    Ok(())
}

#[test]
fn a_power_cut_leaves_a_prefix_with_all_that_was_durable() {
    let given = std::env::var("ZONESTORE_CRASH_STATES").ok();
    let max_states = given.map_or(6, |n| n.parse().unwrap());
    let histories: [&[Op]; 4] = [
        &[
            SyncPut(100),
            Flush,
            SyncPut(5_000),
            Put(10),
            Flush,
            SyncPut(1),
        ],
        &[
            Put(30_000),
            SyncPut(9_000),
            Reopen,
            SyncPut(10),
            Reopen,
            Put(1),
        ],
        // The log grows over its limit, so a snapshot is written without a flush.
        &[
            SyncPut(150_000),
            Put(150_000),
            SyncPut(10),
            SyncPut(200_000),
            Put(10),
        ],
        &[
            Flush,
            Reopen,
            Put(100),
            Flush,
            Flush,
            SyncPut(3),
            Flush,
            Put(50),
            SyncPut(2),
        ],
    ];
    let (mut states, mut lengths) = (0, std::collections::BTreeSet::new());
    for history in histories {
        for cut in 0.. {
            let drive = Arc::new(PowerCut::new(geometry()).unwrap());
            format(&*drive);
            drop(open(&mount(&drive)).unwrap());
            drive.cut_after(cut);
            let mut told = Told::default();
            let fs = try_mount(&drive);
            let ended = fs.is_ok_and(|fs| run(&fs, history, &mut told).is_ok());
            let limits = CrashLimits {
                max_states,
                seed: cut,
                ..CrashLimits::default()
            };
            drive.cut_after(0);
            for state in drive.crash_states(limits) {
                let fs = mount(&Arc::new(drive.image(&state)));
                let kv = open(&fs).unwrap();
                let found = numbers(&kv);
                let context = format!("{history:?} cut at {cut}: {found:?}, {state:?}");
                assert!(found.iter().copied().eq(0..found.len() as u32), "{context}");
                let length = found.len() as u32;
                assert!((told.durable..=told.written).contains(&length), "{context}");
                kv.write(&numbered(99, 10), Durability::Synced).unwrap();
                drop(kv);
                assert_eq!(numbers(&open(&fs).unwrap()).last(), Some(&99));
                // Files of generations that do not count have been deleted.
                assert!(fs.list("/db").unwrap().len() <= 3, "{context}");
                assert!(fs.check(true).unwrap().is_clean());
                states += 1;
                lengths.insert(length);
            }
            if ended {
                break;
            }
        }
    }
    println!("{states} states");
    assert!(lengths.len() > 4 && states > 200, "{states} {lengths:?}");
}
