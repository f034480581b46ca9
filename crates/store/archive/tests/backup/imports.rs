//! Parts of a store, added to another one.

use crate::common::{contents_of, put_in};
use crate::stores::{BACKUP, backup, commit, fresh, try_backup};
use archive::{Error, ImportOptions, Imported, Keeper, PackOptions, Place, Put, Selection, import};
use store::{
    Attributes, CollectionInfo, HashPrefix, HashSource, Hashed, Name, ObjectPath, Store,
    Transaction,
};

fn store_with(objects: &[(&str, &str)]) -> Store {
    let (_, store) = fresh(64, 7);
    commit(&store, |tx| {
        let hashed = Hashed {
            family: 3,
            source: HashSource::Xxh3,
            prefix: HashPrefix::ALL,
        };
        tx.create_collection("c", Attributes::new());
        tx.create_hashed_collection("h", hashed, Attributes::new());
    });
    for (path, data) in objects {
        let (collection, name) = path.split_once('/').unwrap();
        put_in(&store, collection, name, data.as_bytes()).unwrap();
    }
    store
}

fn export(store: &Store, collection: &str, prefix: &str) -> Result<Vec<u8>, Error> {
    let selection = Selection::Export(Some((vec![collection.to_owned()], prefix.into())));
    let options = PackOptions {
        selection,
        ..BACKUP
    };
    Ok(try_backup(store, &options, None)?.0)
}

fn try_import(store: &Store, archive: &[u8], options: &ImportOptions) -> Result<Imported, Error> {
    let mut imported = Imported::default();
    import(store, archive, options, &mut imported, &mut |_| {})?;
    Ok(imported)
}

fn names(store: &Store, collection: &str) -> Vec<(String, String)> {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let all = contents_of(store, collection).into_iter();
    all.map(|(name, data)| (name.to_string(), text(data)))
        .collect()
}

/// Holds "a", and keeps what "x" was as "old x".
#[derive(Debug)]
struct Held;

impl Keeper for Held {
    fn complete(
        &self,
        store: &Store,
        transaction: &mut Transaction,
        collection: &CollectionInfo,
    ) -> store::Result<()> {
        let beside = format!("beside {}", collection.name);
        if store.collection(&beside)?.is_none() {
            transaction.create_collection(&beside, Attributes::new());
        }
        Ok(())
    }

    fn place(
        &self,
        _: &Store,
        (collection, name): (&str, &Name),
        _: &Attributes,
        overwrite: bool,
    ) -> store::Result<Place> {
        assert!(overwrite);
        Ok(match name.text() {
            Some("a") => Place::Refused(format!("held in {collection}")),
            Some("x") => Place::Above,
            _ => Place::Put,
        })
    }

    fn above(
        &self,
        _: &Store,
        transaction: &mut Transaction,
        (collection, name): (&str, &Name),
        mut attributes: Attributes,
        put: Put<'_>,
    ) -> store::Result<Option<String>> {
        transaction.rename((collection, name), (collection, "old x"));
        attributes.insert("above".to_owned(), b"yes".to_vec());
        put(transaction, attributes);
        Ok(None)
    }
}

/// However the import ends.
#[test]
fn a_collection_comes_with_those_it_needs() {
    let archive = export(&store_with(&[("c/b", "b")]), "c", "").unwrap();
    let (_, other) = fresh(64, 8);
    let options = ImportOptions {
        overwrite: true,
        keeper: Some(&Held),
        ..ImportOptions::default()
    };
    let cut = &archive[..archive.len() - 2000];
    let refused = try_import(&other, cut, &options);
    assert!(matches!(refused, Err(Error::CutOff { .. })), "{refused:?}");
    let found = other.collections().unwrap();
    let names: Vec<_> = found.iter().map(|found| &found.name).collect();
    assert_eq!(names, ["beside c", "c"]);
}

#[test]
fn what_is_there_can_be_kept_beside() {
    let store = store_with(&[("c/x", "new x")]);
    let archive = export(&store, "c", "").unwrap();
    let other = store_with(&[("c/x", "x was")]);
    let options = ImportOptions {
        overwrite: true,
        keeper: Some(&Held),
        ..ImportOptions::default()
    };
    try_import(&other, &archive, &options).unwrap();
    let pair = |name: &str, data: &str| (name.to_owned(), data.to_owned());
    let wanted = [pair("old x", "x was"), pair("x", "new x")];
    assert_eq!(names(&other, "c"), wanted);
    let found = other.stat("c", "x").unwrap().unwrap();
    assert_eq!(found.attributes["above"], b"yes");
}

#[test]
fn what_is_there_stays_or_is_replaced() {
    let store = store_with(&[("c/a", "new a"), ("c/b", "new b"), ("c/x", "x")]);
    let archive = export(&store, "c", "").unwrap();
    let other = store_with(&[("c/a", "old a"), ("c/z", "z")]);
    let imported = try_import(&other, &archive, &ImportOptions::default()).unwrap();
    assert_eq!((imported.objects, imported.kept), (2, 1));
    let pair = |name: &str, data: &str| (name.to_owned(), data.to_owned());
    let (b, x, z) = (pair("b", "new b"), pair("x", "x"), pair("z", "z"));
    assert_eq!(
        names(&other, "c"),
        [pair("a", "old a"), b.clone(), x.clone(), z.clone()]
    );
    let overwrite = ImportOptions {
        overwrite: true,
        ..ImportOptions::default()
    };
    // What has to stay is not replaced, and the import says why.
    let guarded = ImportOptions {
        keeper: Some(&Held),
        ..overwrite.clone()
    };
    let before = names(&other, "c");
    let refused = try_import(&other, &archive, &guarded);
    assert!(
        matches!(&refused, Err(Error::Guarded { object, why }) if object == "c/a" && why == "held in c"),
        "{refused:?}"
    );
    assert_eq!(names(&other, "c"), before);
    try_import(&other, &archive, &overwrite).unwrap();
    assert_eq!(names(&other, "c"), [pair("a", "new a"), b, x, z]);
}

#[test]
fn a_part_of_a_collection_goes_where_it_is_wanted() {
    let store = store_with(&[("h/a1", "1"), ("h/a2", "2"), ("h/b", "3")]);
    let archive = export(&store, "h", "a").unwrap();
    let options = ImportOptions {
        overwrite: false,
        to: Some(ObjectPath {
            collection: "copy".to_owned(),
            object: Name::from("old/"),
        }),
        keeper: None,
    };
    try_import(&store, &archive, &options).unwrap();
    let mut found = names(&store, "copy");
    found.sort();
    let pair = |name: &str, data: &str| (name.to_owned(), data.to_owned());
    assert_eq!(found, [pair("old/a1", "1"), pair("old/a2", "2")]);
    let copy = store.collection("copy").unwrap().unwrap();
    assert_eq!(copy.hashed.map(|hashed| hashed.family), Some(4));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let store = store_with(&[("c/a", "1")]);
    let missing = export(&store, "nothing", "");
    assert!(matches!(
        missing,
        Err(Error::Store(store::Error::NoCollection { .. }))
    ));
    assert!(matches!(
        export(&store, "c", "b"),
        Err(Error::NothingSelected { .. })
    ));
    let (full, _) = backup(&store, None);
    let (next, _) = backup(&store, Some(&full));
    let refused = try_import(&store, &next, &ImportOptions::default());
    assert!(matches!(refused, Err(Error::Incremental)));
    let one = ImportOptions {
        overwrite: false,
        to: Some(ObjectPath::prefix(b"c").unwrap()),
        keeper: None,
    };
    let refused = try_import(&store, &full, &one);
    assert!(matches!(
        refused,
        Err(Error::SeveralCollections { collections: 2 })
    ));
    // A full backup can be imported.
    assert_eq!(
        try_import(&store, &full, &ImportOptions::default())
            .unwrap()
            .kept,
        1
    );
}

/// Programs that have derived something from their objects have to derive it anew.
#[test]
fn an_import_changes_the_revision() {
    let source = store_with(&[("c/x", "new")]);
    let archive = export(&source, "c", "").unwrap();
    let store = store_with(&[]);
    let before = store.revision().unwrap();
    put_in(&store, "c", "y", b"put").unwrap();
    assert_eq!(store.revision().unwrap(), before);
    try_import(&store, &archive, &ImportOptions::default()).unwrap();
    assert_ne!(store.revision().unwrap(), before);
}
