//! Reads that are planned.

use super::*;

fn object(size: u64) -> Object {
    let attributes = ObjectAttributes {
        etag: "tag".into(),
        ..Default::default()
    };
    Object {
        size,
        modified_micros: 0,
        attributes,
        lock: Kept::of(&store::Attributes::new()),
    }
}

#[test]
fn a_range_of_another_object_is_all_of_this_one() {
    let whole = object(10);
    let range = Range::Int {
        first: 2,
        last: Some(3),
    };
    let plan = |tag: &str| {
        plan_read(
            &whole,
            &Preconditions::default(),
            Some(tag),
            Some(&range),
            None,
        )
        .unwrap()
    };
    assert_eq!(plan("\"tag\"").range, 2..4);
    assert_eq!(plan("\"other\"").range, 0..10);
}

#[test]
fn objects_that_other_programs_stored_have_a_tag() {
    let info = ObjectInfo {
        name: "o".into(),
        size: 16,
        modified_micros: 255,
        attributes: Default::default(),
    };
    assert_eq!(Object::of(&info).attributes.etag, "10-ff");
}
