//! Uploads as they are kept, and which checksums go together.

use super::*;
use crate::test_bucket::{BUCKET, bucket_on, geometry, with_damaged_records};
use device::{MemoryDrive, ZonedDevice};
use runtime::Runtime;
use std::sync::Arc;

fn plan(
    algorithm: Option<&'static str>,
    kind: Option<&'static str>,
) -> Result<(Option<Algorithm>, bool), String> {
    let algorithm = algorithm.map(ChecksumAlgorithm::from_static);
    let kind = kind.map(ChecksumType::from_static);
    checksum_plan(algorithm.as_ref(), kind.as_ref()).map_err(|e| e.code().as_str().to_owned())
}

#[test]
fn checksum_types_fit_their_algorithms() {
    let invalid = Err("InvalidRequest".to_owned());
    let (full, composite) = (Some("FULL_OBJECT"), Some("COMPOSITE"));
    assert_eq!(plan(None, None), Ok((None, false)));
    assert_eq!(
        plan(Some("CRC32"), None),
        Ok((Some(Algorithm::Crc32), false))
    );
    assert_eq!(
        plan(Some("CRC32C"), full),
        Ok((Some(Algorithm::Crc32c), true))
    );
    assert_eq!(
        plan(Some("CRC64NVME"), None),
        Ok((Some(Algorithm::Crc64Nvme), true))
    );
    assert_eq!(plan(Some("CRC64NVME"), composite), invalid);
    assert_eq!(plan(Some("SHA1"), full), invalid);
    assert_eq!(
        plan(Some("SHA256"), composite),
        Ok((Some(Algorithm::Sha256), false))
    );
    assert_eq!(plan(None, full), invalid);
    assert_eq!(plan(Some("MD6"), None), invalid);
}

#[test]
fn an_upload_is_kept_and_read() {
    let upload = Upload {
        id: "ab".into(),
        key: "a key/é".into(),
        object: ObjectAttributes {
            metadata: [("a".to_owned(), "b".to_owned())].into(),
            ..Default::default()
        },
        lock: Ok(Lock {
            retention: None,
            hold: Some(true),
        }),
        algorithm: Some(Algorithm::Crc32c),
        full: true,
        initiated_micros: 7,
    };
    let info = ObjectInfo {
        name: "ab/meta".into(),
        size: 0,
        modified_micros: 7,
        attributes: upload.encode(),
    };
    let found = Upload::of("ab", &info).unwrap();
    assert_eq!((found.key, found.object), (upload.key, upload.object));
    assert_eq!(
        (found.algorithm, found.full),
        (upload.algorithm, upload.full)
    );
    assert_eq!(found.lock, upload.lock);
    let bare = ObjectInfo {
        attributes: Attributes::new(),
        ..info
    };
    assert!(Upload::of("ab", &bare).is_none());
}

#[test]
fn parts_sort_by_number_and_before_the_meta_object() {
    assert!(part_name("id", 2) < part_name("id", 10));
    assert!(part_name("id", MAX_PARTS) < meta_name("id"));
    assert!(part_number(0).is_err() && part_number(10_001).is_err());
    assert_eq!(part_number(10_000).unwrap(), 10_000);
}

#[test]
fn a_sweep_goes_on_behind_damaged_records() {
    let drive: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry()).unwrap());
    let (store, _) = bucket_on(drive.clone(), Runtime::system());
    let uploads = uploads_of(BUCKET);
    let mut transaction = Transaction::new();
    for name in ["1/00001-damaged", "1/00002", "2/meta-damaged", "3/00001"] {
        transaction.touch(&uploads, name);
    }
    store.commit(transaction).unwrap();
    let store = with_damaged_records(store, &drive, "damaged");
    sweep(&store).unwrap_err();
    let left = store.list_damaged(&uploads, "", "", 9).unwrap();
    let left: Vec<_> = left.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(left, ["1/00001-damaged", "2/meta-damaged"]);
}
