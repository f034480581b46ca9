//! Power cuts while names change.

use super::*;

#[test]
fn replacing_by_rename() {
    let before = [Create(5), Append(5, 16), Sync(5), Close(5)];
    let steps = [
        Create(2),
        Append(2, 16),
        Sync(2),
        Rename(2, 5),
        SyncNames,
        Create(2),
        Append(2, 20),
        Sync(2),
        Rename(2, 5),
        Link(5, 0),
        SyncNames,
        Delete(5),
        Append(0, 5),
        Sync(0),
    ];
    all("replacing by rename", &before, &steps);
}
