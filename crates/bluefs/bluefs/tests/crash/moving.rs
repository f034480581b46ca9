//! Power cuts while live data is moved ahead of need.

use super::*;

#[test]
fn moving_ahead_of_need() {
    // A file shares a zone with one that is deleted. Its data is moved, then appended to, truncated, and moved again.
    let before = [
        Create(2),
        Append(2, 2000),
        Sync(2),
        Close(2),
        Create(5),
        Append(5, 30_000),
        Sync(5),
        Close(5),
        Delete(5),
        SyncNames,
    ];
    let steps = [
        Clean,
        Append(2, 30_000),
        Sync(2),
        Truncate(2, 3500),
        SyncNames,
        Clean,
        Append(2, 700),
        Sync(2),
        Create(5),
        Append(5, 25_000),
        Sync(5),
        Clean,
    ];
    all("moving ahead of need", &before, &steps);
    moves(&before, &steps);
}

/// Asserts that without a power cut, the steps move something on every kind of drive, and lose nothing.
fn moves(before: &[Step], steps: &[Step]) {
    for (g, copies) in geometries() {
        let device = Arc::new(PowerCut::new(g).unwrap());
        format_copies(&*device, Role::Alone, copies);
        let mut pair = Pair::new(device).unwrap();
        for step in before.iter().chain(steps) {
            pair.step(*step).unwrap();
        }
        pair.verify_exactly();
        let cleaned = pair.fs.statistics().zones_cleaned_ahead;
        assert!(cleaned >= 1, "{cleaned}, {:?}", pair.fs.device().geometry());
        pair.step(Kill).unwrap();
    }
}

#[test]
fn moving_logs_ahead_of_need() {
    // An open manifest with many synced records, and a closed one that was truncated.
    let mut before = vec![Create(4)];
    before.extend([Append(4, 90), Sync(4)].repeat(60));
    before.extend([Create(3), Append(3, 40_000), Sync(3), Truncate(3, 3000)]);
    before.extend([Sync(3), Close(3)]);
    let steps = [
        Clean,
        Append(4, 300),
        Sync(4),
        Clean,
        Append(4, 300),
        Append(3, 500),
        Sync(3),
        Clean,
        Truncate(4, 2000),
        Append(4, 700),
        Sync(4),
        Rename(4, 1),
        SyncNames,
    ];
    all("moving logs ahead of need", &before, &steps);
    moves(&before, &steps);
}
