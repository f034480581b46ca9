//! Whether a drive is full, so that its clients need not send a body to find out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::Store;
use tokio::time::MissedTickBehavior;

/// Interval of the looks.
const LOOK: Duration = Duration::from_secs(5);
/// Bytes of an object that a drive which is not full takes. They would lie in a zone, not in the metadata.
const OBJECT: u64 = 64 << 10;
/// Looks without room after which a drive counts as not full for one look: only when a put is tried does the store make
/// the room that counts once it is made, such as that of rows that were removed.
const REFUSED: u32 = 12;

/// Looks again and again, and keeps in `is_full` what was found.
pub(crate) async fn watch(store: Store, is_full: Arc<AtomicBool>) {
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut without_room = 0;
    loop {
        looks.tick().await;
        without_room = counted(without_room, store.has_room(OBJECT));
        is_full.store(without_room > 0, Ordering::Relaxed);
    }
}

/// Looks without room since one with room, or since a put could be tried.
const fn counted(before: u32, has_room: bool) -> u32 {
    match has_room || before == REFUSED {
        true => 0,
        false => before + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_put_is_tried_once_in_a_while() {
        let mut looks = 0;
        let mut full_looks = 0;
        for _ in 0..130 {
            looks = counted(looks, false);
            full_looks += u32::from(looks > 0);
        }
        assert_eq!(full_looks, 120);
        assert_eq!(counted(looks, true), 0);
    }
}
