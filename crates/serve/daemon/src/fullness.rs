//! Whether a drive is full, so that its clients need not send a body to find out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::Store;

/// Interval of the looks.
const LOOK: Duration = Duration::from_secs(5);
/// Bytes of an object that a drive which is not full takes. They would lie in a zone, not in the metadata.
const OBJECT: u64 = 64 << 10;
/// Looks at a full drive between two attempts to make room, which may move much.
const LOOKS_BETWEEN: u32 = 12;

/// Looks again and again, and keeps in `is_full` what was found.
pub(crate) async fn watch(store: Store, is_full: Arc<AtomicBool>) {
    let mut looks = tokio::time::interval(LOOK);
    let mut last = None;
    loop {
        looks.tick().await;
        let store = store.clone();
        // On a thread of its own: making room takes time, and the drive may hang.
        if let Ok(found) = tokio::task::spawn_blocking(move || look(&store, last)).await {
            last = found;
            is_full.store(last.is_some(), Ordering::Relaxed);
        }
    }
}

/// The number of looks until the next attempt; `None` if the drive is not full. An attempt asks for an object as a put
/// does, which makes room: what was removed from the metadata counts only then.
fn look(store: &Store, last: Option<u32>) -> Option<u32> {
    if store.has_room(OBJECT) {
        return None;
    }
    let next = last.and_then(|left| left.checked_sub(1));
    next.or_else(|| {
        let asked = store.writer(Some(OBJECT));
        let is_refused = asked.is_err_and(|error| error.is_no_space());
        is_refused.then_some(LOOKS_BETWEEN)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::{MemoryDrive, profile};
    use kv_log::KvLog;
    use store::{Attributes, MkfsOptions, MountOptions, Transaction};

    fn store() -> Store {
        let profile = profile::by_name("test-small").unwrap();
        let geometry = profile.geometry(128 << 20, None).unwrap();
        let drive = Arc::new(MemoryDrive::new(geometry).unwrap());
        Store::mkfs(drive.clone(), &MkfsOptions::new(KvLog)).unwrap();
        Store::mount(drive, MountOptions::new(KvLog)).unwrap()
    }

    /// An object of `bytes`, with `metadata` bytes beside it.
    fn put(store: &Store, name: &str, bytes: u64, metadata: usize) -> store::Result<()> {
        let mut writer = store.writer(Some(bytes))?;
        writer.write(&vec![7; usize::try_from(bytes).unwrap()])?;
        let attributes = [("m".to_owned(), vec![7; metadata])].into();
        let mut transaction = Transaction::new();
        transaction.put("c", name, writer.finish()?, attributes);
        store.commit(transaction)
    }

    fn remove(store: &Store, name: &str) {
        let mut transaction = Transaction::new();
        transaction.remove_if_present("c", name);
        store.commit(transaction).unwrap();
    }

    /// Fills a store with such objects, looks, and removes the first one.
    fn filled(bytes: u64, metadata: usize) -> (Store, Option<u32>) {
        let store = store();
        let mut transaction = Transaction::new();
        transaction.create_collection("c", Attributes::new());
        store.commit(transaction).unwrap();
        assert_eq!(look(&store, None), None);
        let mut numbers = 0..;
        // What is small still fits behind a refusal of what is not.
        for metadata in [metadata, 0] {
            let is_full = |number: &u32| put(&store, &number.to_string(), bytes, metadata).is_err();
            assert!(numbers.find(is_full).unwrap() > 100);
        }
        let last = look(&store, None);
        assert_eq!(last, Some(LOOKS_BETWEEN));
        remove(&store, "0");
        (store, last)
    }

    #[test]
    fn a_drive_is_no_longer_full_when_data_was_removed() {
        let (store, last) = filled(OBJECT, 0);
        assert_eq!(look(&store, last), None);
        put(&store, "more", OBJECT, 0).unwrap();
    }

    #[test]
    fn a_drive_whose_metadata_was_full_is_asked_again() {
        let (store, mut last) = filled(0, 8 << 10);
        for left in (0..LOOKS_BETWEEN).rev() {
            last = look(&store, last);
            assert_eq!(last, Some(left));
        }
        remove(&store, "1");
        assert!(!store.has_room(OBJECT));
        assert_eq!(look(&store, last), None);
        put(&store, "more", OBJECT, 0).unwrap();
    }
}
