//! Full backups and those that build on them.

use crate::common::{assert_clean, pattern, put_in, seed};
use crate::stores::{
    BACKUP, all, backup, commit, fresh, history, restored, try_backup, try_restore,
};
use crate::world::World;
use archive::{Error, Since, check};
use fastrand::Rng;
use store::Attributes;

fn run(seed: u64) {
    let mut random = Rng::with_seed(seed);
    let (_, store) = fresh(64, 7);
    let mut world = World::default();
    history(&mut random, &store, &mut world, 60);
    let mut archives = vec![backup(&store, None).0];
    let mut states = vec![all(&store)];
    for _ in 0..4 {
        let steps = random.usize(0..40);
        history(&mut random, &store, &mut world, steps);
        archives.push(backup(&store, archives.last().map(Vec::as_slice)).0);
        states.push(all(&store));
    }
    assert_eq!(states.last().unwrap().0, world);
    for (last, state) in states.iter().enumerate() {
        let chain: Vec<&[u8]> = archives[..=last].iter().map(Vec::as_slice).collect();
        let copy = restored(&chain);
        assert!(all(&copy) == *state, "seed {seed}, {last}");
        assert_clean(&copy);
    }
}

#[test]
fn what_is_restored_is_what_there_was() {
    (0..12).for_each(|number| run(seed() * 100 + number));
}

#[test]
fn an_incremental_backup_has_what_has_changed_and_nothing_else() {
    let (_, store) = fresh(64, 7);
    commit(&store, |tx| {
        tx.create_collection("c", Attributes::new())
            .create_collection("d", Attributes::new());
    });
    for number in 0..20 {
        let (name, data) = (format!("o{number}"), pattern(number, 100_000));
        put_in(&store, "c", name, &data).unwrap();
    }
    let (full, _) = backup(&store, None);
    // What the cleaner moves is where it was, as far as anybody can see.
    commit(&store, |tx| _ = tx.remove("c", "o3"));
    store.seal_open_zones().unwrap();
    while store.clean_one().unwrap() {}
    assert!(store.clean_status().bytes_moved > 0);
    put_in(&store, "c", "o5", &pattern(5, 100_000)).unwrap();
    commit(&store, |tx| {
        tx.omap_set("c", "o7", [(b"k".to_vec(), b"v".to_vec())].into())
            .punch("c", "o9", 10, 20)
            .clone_object(("c", "o11"), ("d", "o11"));
    });
    let (next, packed) = backup(&store, Some(&full));
    // Replaced by the same bytes is changed too: nothing is read to find out.
    assert_eq!((packed.objects, packed.unchanged), (4, 16));
    let (none, packed) = backup(&store, Some(&next));
    assert_eq!((packed.objects, packed.unchanged), (0, 20));
    assert!(none.len() < 20_000, "{}", none.len());
    let copy = restored(&[&full, &next, &none]);
    assert!(all(&copy) == all(&store));
    assert_eq!(check(&none[..], &mut |_| {}).unwrap().listed, 20);
}

#[test]
fn a_chain_has_to_be_one() {
    let (_, store) = fresh(64, 7);
    commit(&store, |tx| {
        _ = tx.create_collection("c", Attributes::new())
    });
    let (full, _) = backup(&store, None);
    put_in(&store, "c", "o", b"1").unwrap();
    let (first, _) = backup(&store, Some(&full));
    put_in(&store, "c", "o", b"2").unwrap();
    let (second, _) = backup(&store, Some(&first));
    let refused = |archives: &[&[u8]]| {
        let (_, copy) = fresh(64, 8);
        let error = try_restore(&copy, archives).1.unwrap_err();
        assert!(copy.collections().unwrap().is_empty());
        error
    };
    assert!(matches!(refused(&[&first]), Error::NotFull { .. }));
    assert!(matches!(refused(&[]), Error::NotFull { .. }));
    assert!(matches!(
        refused(&[&full, &second]),
        Error::NotNext { number: 2 }
    ));
    assert!(matches!(
        refused(&[&full, &first, &first]),
        Error::NotNext { number: 3 }
    ));
    // Neither into a store that has something, nor since a backup of another one.
    let (_, other) = fresh(64, 9);
    commit(&other, |tx| {
        _ = tx.create_collection("x", Attributes::new())
    });
    assert!(matches!(
        try_restore(&other, &[&full]).1,
        Err(Error::NotEmpty)
    ));
    let since = try_backup(&other, &BACKUP, Some(&full));
    assert!(matches!(since, Err(Error::WrongParent { .. })));
    let none = Since::open(std::io::Cursor::new(b"nothing")).err();
    assert!(matches!(none, Some(Error::NoArchive)));
}
