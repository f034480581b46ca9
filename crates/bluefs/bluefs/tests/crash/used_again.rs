//! Power cuts while zones and places that held other data are written.

use super::*;

#[test]
fn zones_that_are_used_again() {
    // Each file fills zones that an earlier one left; the resets of these zones may be lost.
    let mut steps = Vec::new();
    for round in 0..4 {
        let file = [0, 1][round % 2];
        steps.extend([
            Create(file),
            Append(file, 23_000),
            RangeSync(file),
            Sync(file),
        ]);
        steps.extend([Close(file), Delete(file), SyncNames]);
    }
    for g in [
        geometry(14, 0, 0),
        geometry(14, 0, 6),
        geometry(14, 3, 0),
        geometry(14, 14, 0),
    ] {
        let states = enumerate(&g, 1, &[], &steps);
        println!("zones that are used again: {states} states after power cuts");
    }
}

#[test]
fn records_and_frames_that_no_flush_has_parted() {
    // Of two records that were written one after the other without a flush, a conventional zone may lose the first. The
    // mark of the second must not say that it was durable.
    let closed = [Append(1, 450), Close(1)];
    let mut steps = vec![Create(1), Append(1, 450), Sync(1)];
    for _ in 0..3 {
        steps.extend(closed);
    }
    steps.extend([Append(1, 450), Sync(1)]);
    all("records without a flush between", &[], &steps);
    let mut steps = vec![Create(0)];
    for _ in 0..700 {
        steps.extend([Rename(0, 2), Rename(2, 0)]);
    }
    steps.push(SyncNames);
    all("frames without a flush between", &[], &steps);
}

#[test]
fn records_that_an_earlier_log_of_the_same_mount_left() {
    // Many logs, one after another; in a conventional zone there are bytes of a longer log under each.
    let mut steps = Vec::new();
    for round in 0..18 {
        let appends = [6, 2][usize::from(round > 9)];
        steps.push(Create(1));
        steps.extend([Append(1, 450), Sync(1)].repeat(appends));
        steps.extend([Close(1), Delete(1), SyncNames]);
    }
    let states = enumerate(&geometry(14, 14, 0), 1, &[], &steps);
    println!("logs that come and go: {states} states after power cuts");
}
