//! Power cuts while logs and SSTs are written.

use super::*;

#[test]
fn a_log_and_a_table() {
    let steps = [
        Create(1),
        Append(1, 450),
        Sync(1),
        Append(1, 450),
        Sync(1),
        Create(0),
        Append(0, 9000),
        Sync(0),
        Append(1, 2000),
        Sync(1),
        Close(0),
        Delete(1),
        SyncNames,
        Append(0, 700),
        Sync(0),
    ];
    all("a log and a table", &[], &steps);
}

#[test]
fn files_over_several_zones() {
    let steps = [
        Create(0),
        Append(0, 60_000),
        Sync(0),
        Create(1),
        Append(1, 50_000),
        RangeSync(1),
        Append(1, 10),
        Sync(1),
        Delete(0),
        SyncNames,
        Create(2),
        Append(2, 30_000),
        Sync(2),
    ];
    all("files over several zones", &[], &steps);
}

#[test]
fn truncating() {
    let before = [
        Create(1),
        Append(1, 3000),
        Sync(1),
        Create(0),
        Append(0, 3000),
        Sync(0),
    ];
    let steps = [
        Truncate(1, 1234),
        Append(1, 600),
        Sync(1),
        Truncate(0, 1234),
        Append(0, 600),
        Sync(0),
        Truncate(1, 5),
        Sync(1),
        Close(1),
        Append(1, 700),
        Sync(1),
        Truncate(0, 5),
        Sync(0),
    ];
    all("truncating", &before, &steps);
}
