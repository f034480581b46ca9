//! A drive in memory with a store on it.
#![allow(clippy::unwrap_used)]

use device::{MemoryDrive, profile};
use kv_log::KvLog;
use std::sync::Arc;
use store::{MkfsOptions, MountOptions, Store};

pub fn formatted() -> Arc<MemoryDrive> {
    formatted_as([1; 16])
}

pub fn formatted_as(uuid: [u8; 16]) -> Arc<MemoryDrive> {
    let profile = profile::by_name("test-small").unwrap();
    let geometry = profile.geometry(128 << 20, None).unwrap();
    let drive = Arc::new(MemoryDrive::new(geometry).unwrap());
    let options = MkfsOptions {
        uuid,
        ..MkfsOptions::new(KvLog)
    };
    Store::mkfs(drive.clone(), &options).unwrap();
    drive
}

pub fn mount(drive: &Arc<MemoryDrive>) -> Store {
    Store::mount(drive.clone(), MountOptions::new(KvLog)).unwrap()
}
