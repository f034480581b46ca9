//! A store of another format version is refused before any of its bytes are changed.

use crate::common::*;
use device::{MemoryDrive, ZonedDevice};
use kv::{Batch, Durability};
use std::sync::Arc;
use store::{Error, FORMAT_VERSION, MountOptions, Store};

#[test]
fn another_version_is_refused_by_name_and_its_log_is_left_alone() {
    for version in [2, FORMAT_VERSION + 1] {
        let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry(64)).unwrap());
        mkfs(&device);
        let (fs, kv) = database(&device);
        let mut batch = Batch::default();
        batch.put(b"Sformat", &[&version.to_le_bytes()[..], &[7; 16]].concat());
        kv.write(&batch, Durability::Synced).unwrap();
        kv.flush().unwrap();
        // A row that only the log has, with a note that this version cannot decode.
        let mut batch = Batch::default();
        batch.put(b"Xrow", b"value");
        batch.log_data(b"a note of another version");
        kv.write(&batch, Durability::Synced).unwrap();
        drop((kv, fs));
        for read_only in [true, false, false] {
            let options = MountOptions {
                read_only,
                ..options()
            };
            match Store::mount(device.clone(), options) {
                Err(error @ Error::UnsupportedVersion { found, supported }) => {
                    assert_eq!((found, supported), (version, FORMAT_VERSION));
                    let words = error.to_string();
                    assert_eq!(
                        words.contains("copy its objects out"),
                        version < FORMAT_VERSION
                    );
                }
                Err(error) => panic!("{error}"),
                Ok(_) => panic!("version {version} was mounted"),
            }
        }
        let (_fs, kv) = database(&device);
        assert_eq!(kv.get(b"Xrow").unwrap().as_deref(), Some(&b"value"[..]));
    }
}
