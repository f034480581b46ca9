//! What does not fit one transaction: many rows of an omap, many holes. And more objects than a part of the list.

use crate::common::{assert_clean, pattern, put_in, written};
use crate::stores::{all, backup, commit, fresh, restored};
use store::{Attributes, Omap};

#[test]
fn large_omaps_many_holes_and_many_objects_come_back() {
    let (_, store) = fresh(96, 7);
    commit(&store, |tx| {
        _ = tx.create_collection("c", Attributes::new())
    });
    put_in(&store, "c", "rows", &pattern(1, 50_000)).unwrap();
    put_in(&store, "c", "holes", b"begins").unwrap();
    for thousand in 0..4_u32 {
        let keys = thousand * 1000..thousand * 1000 + 1000;
        let rows = keys.map(|key| (key.to_be_bytes().to_vec(), vec![key as u8; 200]));
        let rows: Omap = rows.collect();
        commit(&store, |tx| _ = tx.omap_set("c", "rows", rows));
    }
    for hole in 1..300_u64 {
        let data = written(&store, &pattern(hole, 50)).unwrap();
        commit(&store, |tx| {
            tx.punch("c", "holes", 6 + (hole - 1) * 9000, 8950);
            tx.write("c", "holes", 6 + hole * 9000 - 50, data);
        });
    }
    for number in 0..700_u64 {
        let name = format!("many/{}/{number}", number % 7);
        put_in(&store, "c", name, &pattern(number, 10)).unwrap();
    }
    let (archive, packed) = backup(&store, None);
    assert_eq!(packed.objects, 702);
    let copy = restored(&[&archive]);
    assert!(all(&copy) == all(&store));
    // Neither parts nor the place for them are left.
    assert_eq!(copy.collections().unwrap().len(), 1);
    assert_clean(&copy);
}
