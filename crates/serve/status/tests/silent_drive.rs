//! A drive that does not answer keeps nobody from learning that.
#![allow(clippy::unwrap_used)]

use device::changed::{Change, Changed};
use device::stats::Stats;
use device::{MemoryDrive, ZonedDevice, profile};
use kv_rocksdb::RocksDb;
use status::{Access, Keys, Served, Status};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use store::{MkfsOptions, MountOptions, Store};
use zone::{ByteOffset, ZoneResult};

/// Reads wait while this is set.
struct Silence(Arc<AtomicBool>);

impl Change<MemoryDrive> for Silence {
    fn read(&self, drive: &MemoryDrive, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        while self.0.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(5));
        }
        drive.read(at, buffer)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_known_is_told_while_the_drive_is_silent() {
    let profile = profile::by_name("test-small").unwrap();
    let geometry = profile.geometry(64 << 20, None).unwrap();
    let silence = Arc::<AtomicBool>::default();
    let device: Arc<dyn ZonedDevice> = Arc::new(Changed {
        drive: MemoryDrive::new(geometry).unwrap(),
        change: Silence(silence.clone()),
    });
    Store::mkfs(device.clone(), &MkfsOptions::new(RocksDb)).unwrap();
    let device = Arc::new(Stats::new(device));
    let store = Store::mount(device.clone(), MountOptions::new(RocksDb)).unwrap();
    let served = Served {
        name: "in memory".to_owned(),
        device,
        store: store.clone(),
        lost_lines: Box::new(Vec::new),
    };
    let status = Status::new(Access::Keys, Keys::pair("a", "b"), served);
    let before = status.document().await.drive.unwrap();
    assert_eq!(before.zones.unwrap().geometry.zone_count, 64);
    tokio::time::sleep(Duration::from_secs(1)).await;

    silence.store(true, Relaxed);
    let asked = [status.document(), status.document(), status.document()];
    let [one, two, three] = asked.map(Box::pin);
    let told = tokio::join!(one, two, three).2;
    let age = told.drive.unwrap().age_seconds;
    silence.store(false, Relaxed);
    assert!(age > 2.5, "{age}");

    // And when it answers again, so is what is new.
    status.idle().await;
    let after = status.document().await.drive.unwrap();
    assert!(after.age_seconds < age && after.zones.is_some());
    store.unmount().unwrap();
}
