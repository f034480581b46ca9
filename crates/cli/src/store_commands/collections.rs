//! `store collection …`: creates, lists and changes collections.

use super::names::check_name;
use super::{objects, with_objects};
use crate::args::CollectionCommand;
use crate::errors::CommandResult;
use crate::output::Output;
use control::api::Collection;
use s3::plain;
use serde_json::json;
use std::path::Path;
use store::{Attributes, Hashed, Store, Transaction};

/// Runs `store collection …`.
pub fn run(command: &CollectionCommand, out: &mut Output) -> CommandResult {
    match command {
        CollectionCommand::Ls(which) => objects::collections(&which.drive, out),
        CollectionCommand::Create(new) => {
            let name = &new.collection;
            change(&new.drive, &[name], out, |store, transaction| {
                match new.hash {
                    Some(source) => {
                        let family = new.family.map_or_else(|| store.unused_family(), Ok)?;
                        let prefix = new.prefix;
                        let hashed = Hashed {
                            family,
                            source,
                            prefix,
                        };
                        transaction.create_hashed_collection(name, hashed, Attributes::default());
                    }
                    None => plain::add_bucket(transaction, name),
                }
                Ok(())
            })
        }
        CollectionCommand::Split(two) => {
            let (from, into) = (&two.collection, &two.into);
            change(&two.drive, &[from, into], out, |_, transaction| {
                transaction.split_collection(from, into, Attributes::default());
                Ok(())
            })
        }
        CollectionCommand::Merge(two) => {
            let (from, into) = (&two.collection, &two.into);
            change(&two.drive, &[from, into], out, |_, transaction| {
                transaction.merge_collection(from, into);
                Ok(())
            })
        }
        CollectionCommand::Rm { drive, collection } => {
            change(drive, &[collection], out, |store, _| {
                plain::remove_bucket(store, collection)
            })
        }
    }
}

/// Runs `work` on the named collections, and prints their new state.
fn change(
    drive: &Path,
    names: &[&String],
    out: &mut Output,
    work: impl FnOnce(&Store, &mut Transaction) -> store::Result<()>,
) -> CommandResult {
    with_objects(drive, |store| {
        for name in names {
            check_name(store, name, out)?;
        }
        let mut transaction = Transaction::new();
        work(store, &mut transaction)?;
        store.commit(transaction)?;
        let mut values = Vec::new();
        for name in names {
            let found = store.collection(name)?.map(Collection::from);
            let kind = found.as_ref().map_or("gone".to_owned(), Collection::kind);
            out.exact_line(format_args!("{}: {kind}", out.name(name.as_str())))?;
            values.extend(found);
        }
        out.value(&json!({ "collections": values }))
    })
}
