//! `store collection …`: collections themselves.

use super::{Access, objects, with_store};
use crate::args::{CollectionCommand, CollectionCreate};
use crate::errors::CommandResult;
use crate::output::Output;
use control::api::Collection;
use s3::plain;
use serde_json::json;
use std::path::Path;
use store::{Attributes, Hashed, Store, Transaction};

/// Carries out a command on collections.
pub fn run(command: &CollectionCommand, out: &mut Output) -> CommandResult {
    match command {
        CollectionCommand::Ls(which) => objects::collections(&which.drive, out),
        CollectionCommand::Create(new) => change(&new.drive, &[&new.collection], out, |store| {
            create(store, new)
        }),
        CollectionCommand::Split(two) => {
            change(&two.drive, &[&two.collection, &two.into], out, |store| {
                let (from, into) = (&two.collection, &two.into);
                let mut transaction = Transaction::new();
                transaction.split_collection(from, into, Attributes::default());
                store.commit(transaction)
            })
        }
        CollectionCommand::Merge(two) => {
            change(&two.drive, &[&two.collection, &two.into], out, |store| {
                let mut transaction = Transaction::new();
                transaction.merge_collection(&two.collection, &two.into);
                store.commit(transaction)
            })
        }
        CollectionCommand::Rm { drive, collection } => change(drive, &[collection], out, |store| {
            plain::remove_bucket(store, collection)
        }),
    }
}

fn create(store: &Store, new: &CollectionCreate) -> store::Result<()> {
    let Some(source) = new.hash else {
        return plain::make_bucket(store, &new.collection);
    };
    let known = store.collections()?;
    let families = known.iter().filter_map(|known| Some(known.hashed?.family));
    let unused = families.max().map_or(1, |family| family.saturating_add(1));
    let hashed = Hashed {
        family: new.family.unwrap_or(unused),
        source,
        prefix: new.prefix,
    };
    let mut transaction = Transaction::new();
    transaction.create_hashed_collection(&new.collection, hashed, Attributes::default());
    store.commit(transaction)
}

/// Does the work, and says what the collections of these names are then.
fn change(
    drive: &Path,
    names: &[&String],
    out: &mut Output,
    work: impl FnOnce(&Store) -> store::Result<()>,
) -> CommandResult {
    with_store(drive, Access::Write, |store| {
        work(store)?;
        let mut values = Vec::new();
        for name in names {
            let found = store.collection(name)?;
            let kind = found
                .as_ref()
                .map_or_else(|| "gone".to_owned(), |found| objects::kind(&found.hashed));
            out.exact_line(format_args!("{}: {kind}", out.name(name.as_str())))?;
            values.extend(found.map(Collection::from));
        }
        out.value(&json!({ "collections": values }))
    })
}
