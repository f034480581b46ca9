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

#[test]
fn damage_to_the_list_of_damage_is_remembered_too() {
    let store = mount(&drive());
    let inner = &store.inner;
    let mut file = inner.fs.create(NEW).unwrap();
    file.append(b"no list").unwrap();
    file.sync().unwrap();
    file.close().unwrap();
    inner.fs.rename(NEW, FILE).unwrap();
    inner.remember_damage(&corrupt(b"row", "no row", 0));
    let known = inner.metadata_damage();
    assert_eq!(known.len(), 2);
    assert!(known[0].starts_with(FILE), "{known:?}");
    // Until a pass over all rows has found nothing.
    assert!(inner.forget_damage_of_rows(u64::MAX).unwrap());
    assert!(inner.metadata_damage().is_empty());
}
