//! Orders that do and do not fit what is stored.

use super::*;
use crate::multipart::{begin, begin_part};
use crate::test_bucket::{BUCKET, bucket_on, geometry, with_damaged_records, written};
use device::{MemoryDrive, ZonedDevice};
use objects::digest::hex;
use runtime::Runtime;
use std::sync::Arc;

fn stored(number: u32, data: &[u8], size: u64) -> StoredPart {
    let mut digester = Digester::new([Algorithm::Md5]);
    digester.update(data);
    StoredPart {
        number,
        etag: digester.finish().hex(Algorithm::Md5),
        size,
        modified_micros: 0,
        checksum: Some(Checksum::full(Algorithm::Crc32, &Algorithm::Crc32.of(data))),
    }
}

fn listed(part: &StoredPart) -> CompletedPart {
    CompletedPart {
        part_number: Some(part.number as i32),
        e_tag: Some(ETag::Strong(part.etag.clone())),
        ..Default::default()
    }
}

fn upload(algorithm: Option<Algorithm>, full: bool) -> Upload {
    Upload {
        id: "id".into(),
        key: "key".into(),
        object: ObjectAttributes::default(),
        lock: Ok(crate::lock::Lock::default()),
        algorithm,
        full,
        initiated_micros: 0,
    }
}

fn order(parts: &[&StoredPart]) -> Order {
    Order {
        parts: parts.iter().map(|part| listed(part)).collect(),
        checksum: None,
        size: None,
        kind: None,
    }
}

fn code(result: S3Result<Assembly>) -> String {
    result
        .err()
        .map(|error| error.code().as_str().to_owned())
        .unwrap_or_default()
}

#[test]
fn parts_make_an_object() {
    let (one, two, three) = (
        stored(1, b"a", 6 << 20),
        stored(3, b"b", 6 << 20),
        stored(9, b"c", 1),
    );
    let all = [one.clone(), two.clone(), three.clone()];
    let made = assemble(&upload(None, false), &order(&[&one, &two, &three]), &all).unwrap();
    assert_eq!(made.numbers, [1, 3, 9]);
    // (printf a | md5sum; printf b | md5sum; printf c | md5sum) | cut -c-32 | xxd -r -p | md5sum
    assert_eq!(made.attributes.etag, "4054c6f7787ecb7b323323155b0c0583-3");
    assert_eq!(
        made.attributes.parts,
        Some(PartSizes::new([6 << 20, 6 << 20, 1]))
    );
    assert_eq!(made.attributes.upload.as_deref(), Some("id"));
    // Parts that are not listed stay out.
    let made = assemble(&upload(None, false), &order(&[&two]), &all).unwrap();
    assert_eq!(made.numbers, [3]);
}

#[test]
fn orders_that_do_not_fit() {
    let (one, two) = (stored(1, b"a", 6 << 20), stored(2, b"b", 6 << 20));
    let all = [one.clone(), two.clone()];
    let plain = upload(None, false);
    let check = |order: &Order| code(assemble(&plain, order, &all));
    assert_eq!(check(&order(&[])), "MalformedXML");
    assert_eq!(check(&order(&[&two, &one])), "InvalidPartOrder");
    assert_eq!(check(&order(&[&one, &one])), "InvalidPartOrder");
    assert_eq!(check(&order(&[&stored(3, b"c", 1)])), "InvalidPart");
    assert_eq!(check(&order(&[&stored(1, b"other", 1)])), "InvalidPart");
    let mut nameless = order(&[&one]);
    nameless.parts[0].e_tag = None;
    assert_eq!(check(&nameless), "MalformedXML");
    let mut negative = order(&[&one]);
    negative.parts[0].part_number = Some(-1);
    assert_eq!(check(&negative), "InvalidPart");
    let mut wrong = order(&[&one]);
    wrong.parts[0].checksum_crc32 = Some("AAAAAA==".into());
    assert_eq!(check(&wrong), "InvalidPart");
    let sized = Order {
        size: Some(5),
        ..order(&[&one])
    };
    assert_eq!(check(&sized), "InvalidRequest");
    let sized = Order {
        size: Some(12 << 20),
        ..order(&[&one, &two])
    };
    assert_eq!(check(&sized), "");
}

#[test]
fn only_the_last_part_may_be_small() {
    let (small, big) = (
        stored(1, b"a", MIN_PART_BYTES - 1),
        stored(2, b"b", MIN_PART_BYTES),
    );
    let all = [small.clone(), big.clone()];
    let plain = upload(None, false);
    assert_eq!(
        code(assemble(&plain, &order(&[&small, &big]), &all)),
        "EntityTooSmall"
    );
    assert_eq!(code(assemble(&plain, &order(&[&small]), &all)), "");
    let (big, small) = (stored(1, b"a", MIN_PART_BYTES), stored(2, b"b", 0));
    let all = [big.clone(), small.clone()];
    assert_eq!(code(assemble(&plain, &order(&[&big, &small]), &all)), "");
}

#[test]
fn checksums_of_wholes() {
    // Sizes that are those of the data, so that the checksums combine; too small for S3, which is
    // checked elsewhere.
    let (one, two) = (stored(1, b"hello ", 6), stored(2, b"world", 5));
    let chosen = [&one, &two];
    let full = whole_checksum(&upload(Some(Algorithm::Crc32), true), &chosen).unwrap();
    assert_eq!(
        full,
        Checksum::full(Algorithm::Crc32, &Algorithm::Crc32.of(b"hello world"))
    );
    assert!(!full.is_composite());
    let composite = whole_checksum(&upload(Some(Algorithm::Crc32), false), &chosen).unwrap();
    let all = [
        Algorithm::Crc32.of(b"hello "),
        Algorithm::Crc32.of(b"world"),
    ]
    .concat();
    let expected = crate::digest::base64(&Algorithm::Crc32.of(&all));
    assert_eq!(composite.text, format!("{expected}-2"));
    assert!(composite.is_composite());
    // A part without the checksum leaves the whole without it.
    assert_eq!(
        whole_checksum(&upload(Some(Algorithm::Sha1), false), &chosen),
        None
    );
    for (text, fits) in [
        (composite.text.clone(), true),
        (expected, true),
        ("AAAAAA==".into(), false),
    ] {
        let order = Order {
            checksum: Some((Algorithm::Crc32, text)),
            ..order(&[])
        };
        assert_eq!(check_announced(&order, Some(&composite)).is_ok(), fits);
    }
}

#[test]
fn every_checksum_that_is_listed_is_compared() {
    let one = stored(1, b"a", 1);
    let mut order = order(&[&one]);
    order.parts[0].checksum_crc32 = one.checksum.as_ref().map(|found| found.text.clone());
    let all = [one];
    assert_eq!(code(assemble(&upload(None, false), &order, &all)), "");
    order.parts[0].checksum_sha256 = Some("of another kind".to_owned());
    assert_eq!(
        code(assemble(&upload(None, false), &order, &all)),
        "InvalidPart"
    );
}

/// Stores the least data that a part may have.
fn put_part(store: &Store, id: &str, number: u32) -> StoredPart {
    let data = vec![1; MIN_PART_BYTES as usize];
    let part = stored(number, &data, MIN_PART_BYTES);
    let attributes = ObjectAttributes {
        etag: part.etag.clone(),
        ..Default::default()
    };
    let (mut transaction, collection, name) = begin_part(BUCKET, id, number);
    let data = written(store, &data);
    transaction.put(&collection, name, data, attributes.encode());
    store.commit(transaction).unwrap();
    part
}

/// A store with an upload of three parts, the last of which has a damaged record.
fn with_a_damaged_part() -> (Store, Locks, String, [StoredPart; 3]) {
    let drive: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry()).unwrap());
    let (store, locks) = bucket_on(drive.clone(), Runtime::system());
    let id = hex(&[1; 16]);
    let begun = Upload {
        id: id.clone(),
        ..upload(None, false)
    };
    begin(&store, BUCKET, begun).unwrap();
    let all = [1, 2, 3].map(|number| put_part(&store, &id, number));
    let store = with_damaged_records(store, &drive, "/00003");
    (store, locks, id, all)
}

fn completed(
    (store, locks, id): (&Store, &Locks, &str),
    parts: &[StoredPart],
) -> Result<u64, String> {
    let parts: Vec<&StoredPart> = parts.iter().collect();
    run(store, locks, (BUCKET, "key"), id, &order(&parts), &[])
        .map_err(|error| error.code().as_str().to_owned())?;
    Ok(store.stat(BUCKET, "key").unwrap().unwrap().size)
}

#[test]
fn a_damaged_part_that_is_not_listed_is_not_needed() {
    let (store, locks, id, all) = with_a_damaged_part();
    let client = (&store, &locks, &*id);
    let refused = completed(client, &all).unwrap_err();
    assert_eq!(refused, "InvalidPart");
    assert_eq!(completed(client, &all[..2]), Ok(2 * MIN_PART_BYTES));
}

#[test]
fn a_damaged_part_is_sent_again() {
    let (store, locks, id, all) = with_a_damaged_part();
    put_part(&store, &id, 3);
    let size = completed((&store, &locks, &*id), &all);
    assert_eq!(size, Ok(3 * MIN_PART_BYTES));
}
