//! A store is mounted only by the engine that made its database; the error of any other names both engines.

use crate::common::*;
use device::{MemoryDrive, ZonedDevice};
use kv_log::KvLog;
use kv_rocksdb::RocksDb;
use std::sync::Arc;
use store::{Error, MkfsOptions, MountOptions, Store};

fn mounted(made: MkfsOptions, mount: MountOptions) -> Result<Store, Error> {
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(64)).unwrap());
    Store::mkfs(device.clone(), &made).unwrap();
    Store::mount(device, mount)
}

#[test]
fn another_engine_than_the_one_that_made_it_is_refused() {
    let refused = mounted(MkfsOptions::new(RocksDb), MountOptions::new(KvLog)).err();
    let other = kv::Error::OtherEngine {
        found: "RocksDB",
        given: "kv-log",
    };
    assert!(matches!(refused, Some(Error::Kv(error)) if error == other));
    let refused = mounted(MkfsOptions::new(KvLog), MountOptions::new(RocksDb)).err();
    let told = "the database was made by kv-log, not by RocksDB";
    assert!(refused.unwrap().to_string().contains(told));
    drop(mounted(MkfsOptions::new(KvLog), MountOptions::new(KvLog)).unwrap());
}
