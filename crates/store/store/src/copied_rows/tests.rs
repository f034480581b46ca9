//! What the lock of summaries is held for.

use crate::format::key;
use crate::format::scrub::DamageRecord;
use crate::summary_writer::Why;
use crate::{Store, test_drive};
use device::changed::Change;
use device::{MemoryDrive, ZonedDevice};
use kv::{Batch, Durability};
use std::sync::Mutex;
use zone::{ByteOffset, ZoneAddress, ZoneResult};

/// Looks before each read whether the lock of a store's summaries is held.
#[derive(Default)]
struct Looks {
    store: Mutex<Option<Store>>,
    held: Mutex<Vec<bool>>,
}

impl Change<MemoryDrive> for Looks {
    fn read(&self, drive: &MemoryDrive, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        if let Some(store) = &*self.store.lock().unwrap() {
            let is_held = store.inner.summaries.writing.try_lock().is_none();
            self.held.lock().unwrap().push(is_held);
        }
        drive.read(at, buffer)
    }
}

/// A read that does not return would stop the resets of all zones, and so all writes.
#[test]
fn nothing_is_read_from_the_drive_under_the_lock_of_summaries() {
    let (device, store) = test_drive::changed(Looks::default());
    test_drive::put(&store, "a");
    let inner = store.inner.clone();
    inner.write_summaries(inner.data.of(0), Why::All);
    let zone = store.zones().first().unwrap().zone;
    let damage = DamageRecord {
        length: 4096,
        is_mismatch: false,
        found_micros: 1,
    };
    let mut batch = Batch::default();
    batch.put(&key::damage(ZoneAddress::new(zone, 0)), &damage.encode());
    let kv = inner.kv().unwrap();
    kv.write(&batch, Durability::Synced).unwrap();
    drop(kv);
    *device.change.store.lock().unwrap() = Some(store.clone());
    inner.drop_lost_summaries(zone).unwrap();
    let read_by_scrub = device.change.held.lock().unwrap().len();
    assert!(read_by_scrub > 0);
    test_drive::remove(&store, "a");
    store.seal_open_zones().unwrap();
    assert!(inner.reset_zone(zone).unwrap());
    *device.change.store.lock().unwrap() = None;
    let held = device.change.held.lock().unwrap();
    assert!(held.len() > read_by_scrub);
    assert!(held.iter().all(|is_held| !is_held), "{held:?}");
}
