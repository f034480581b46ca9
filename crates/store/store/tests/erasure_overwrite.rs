//! The example's overwrite of a stripe over three shards, with each shard's power cut at every command: afterwards all
//! shards have the new bytes or all the old ones, and the parity fits.

#[path = "../examples/erasure_overwrite.rs"]
mod example;

use crate::common::*;
use device::ZonedDevice;
use device::power_cut::{CrashLimits, PowerCut};
use example::Stripe;
use std::sync::Arc;
use store::Store;

const CHUNK: usize = 300_000;
const OFFSET: usize = 100_000;

fn mounted(drive: &Arc<PowerCut>) -> Store {
    mount(&(drive.clone() as Arc<dyn ZonedDevice>))
}

/// The drive after a power cut and a restart.
fn restarted(drive: &PowerCut, seed: u64) -> Arc<PowerCut> {
    let limits = CrashLimits {
        max_states: 3,
        seed,
        ..CrashLimits::default()
    };
    let states = drive.crash_states(limits);
    Arc::new(drive.restart(&states[seed as usize % states.len()]))
}

fn overwritten(old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut bytes = old.to_vec();
    let half = new.len() / 2;
    bytes[OFFSET..OFFSET + half].copy_from_slice(&new[..half]);
    bytes[CHUNK + OFFSET..CHUNK + OFFSET + half].copy_from_slice(&new[half..]);
    bytes
}

#[test]
fn a_stripe_is_old_or_new_wherever_a_shard_stops() {
    let (old, new) = (pattern(1, 2 * CHUNK), pattern(2, 200_000));
    let drives = [0; 3].map(|_| {
        let drive = Arc::new(PowerCut::new(geometry(64)).unwrap());
        mkfs(&(drive.clone() as Arc<dyn ZonedDevice>));
        drive
    });
    let stripe = Stripe(drives.each_ref().map(mounted));
    stripe.create(&old).unwrap();
    let live = stripe.0[0].statfs().live_bytes;
    stripe.0.iter().for_each(|shard| shard.unmount().unwrap());
    drop(stripe);
    drives.iter().for_each(|drive| drive.flush().unwrap());
    let expected = overwritten(&old, &new);
    let (mut olds, mut news) = (0, 0);
    for stopped in 0..3 {
        for cut in 0.. {
            let copies = drives.each_ref().map(|drive| restarted(drive, 0));
            let stripe = Stripe(copies.each_ref().map(mounted));
            copies[stopped].cut_after(cut);
            let all = stripe.overwrite(OFFSET as u64, &new);
            drop(stripe);
            let stripe = Stripe(copies.each_ref().map(|drive| {
                let drive = restarted(drive, cut + seed());
                mounted(&drive)
            }));
            stripe.recover().unwrap();
            let found = stripe.read(None).unwrap();
            assert!(found == expected || (found == old && all.is_err()));
            assert!((0..3).all(|lost| stripe.read(Some(lost)).unwrap() == found));
            for shard in &stripe.0 {
                assert_clean(shard);
                // The rollback object is removed.
                assert_eq!(shard.list("shards", "", "", 9).unwrap().len(), 1);
            }
            *(if found == old { &mut olds } else { &mut news }) += 1;
            if all.is_ok() {
                break;
            }
        }
    }
    assert!(olds > 5 && news > 5, "{olds} old, {news} new");
    assert!(live < 2 * CHUNK as u64);
}

/// Rollback objects cost metadata only.
#[test]
fn the_old_bytes_are_kept_without_a_copy() {
    let drives = [0; 3].map(|_| {
        let drive = Arc::new(PowerCut::new(geometry(64)).unwrap());
        mkfs(&(drive.clone() as Arc<dyn ZonedDevice>));
        drive
    });
    let stripe = Stripe(drives.each_ref().map(mounted));
    stripe.create(&pattern(1, 2 << 20)).unwrap();
    let used = |shard: &Store| {
        shard
            .zones()
            .iter()
            .map(|zone| zone.written_bytes)
            .sum::<u64>()
    };
    let before = stripe.0.each_ref().map(used);
    let (half, blocks) = (256 << 10, 8 * 4096);
    stripe.overwrite(65_536, &vec![7; 2 * half]).unwrap();
    for (before, shard) in before.iter().zip(&stripe.0) {
        let written = used(shard) - before;
        // The new bytes, and the blocks of a few summaries.
        assert!(written <= half as u64 + blocks, "{written}");
    }
}
