//! Threads that find damage at the same time.

use super::*;
use crate::rows::corrupt;
use crate::test_drive::{drive, mount};
use std::time::Duration;

#[test]
fn what_another_thread_finds_meanwhile_is_remembered_too() {
    let store = mount(&drive());
    let inner = &store.inner;
    std::thread::scope(|threads| {
        let changed = inner.change(|known| {
            let error = corrupt(b"row", "no row", 0);
            let other = threads.spawn(move || inner.remember_damage(&error));
            // Time in which it would change the file.
            for _ in 0..20 {
                if !other.is_finished() {
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
            known
                .iter()
                .cloned()
                .chain([inner.entry(ROWS, "a")])
                .collect()
        });
        changed.unwrap();
    });
    assert_eq!(inner.metadata_damage().len(), 2);
}
