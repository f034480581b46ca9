//! A drive that does not answer keeps nobody from learning that.
#![allow(clippy::unwrap_used)]

use device::changed::{Change, Changed};
use device::stats::Stats;
use device::{MemoryDrive, ZonedDevice, profile};
use kv_rocksdb::RocksDb;
use status::{Access, Keys, Served, Status};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
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

/// Number of zones that a document tells of once its snapshot is younger than `seconds`. A document itself waits for the
/// drive for a short time only.
async fn zones(status: &Status, seconds: f64) -> u32 {
    let told = async {
        loop {
            status.idle().await;
            if let Some(drive) = status.document().await.drive
                && drive.age_seconds < seconds
                && let Some(zones) = drive.zones
            {
                return zones.geometry.zone_count;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let told = tokio::time::timeout(Duration::from_mins(10), told).await;
    told.unwrap()
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
    assert_eq!(zones(&status, f64::INFINITY).await, 64);

    silence.store(true, Relaxed);
    let begun = Instant::now();
    // The longer the last snapshot took, the longer it is told without a wait for a new one.
    let age = loop {
        let asked = [status.document(), status.document(), status.document()];
        let [one, two, three] = asked.map(Box::pin);
        let told = tokio::join!(one, two, three).2;
        let age = told.drive.unwrap().age_seconds;
        if age > 2.5 {
            break age;
        }
        assert!(begun.elapsed() < Duration::from_mins(10), "{age}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    silence.store(false, Relaxed);

    // And when it answers again, so is what is new.
    assert_eq!(zones(&status, age).await, 64);
    store.unmount().unwrap();
}
