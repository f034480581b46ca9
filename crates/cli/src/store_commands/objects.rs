//! `store ls|put|get|rm`: lists, stores, reads and removes objects.

use super::names::{check_alone, check_name};
use super::{Access, with_objects, with_store, with_view};
use crate::args::{StoreGet, StoreList, StorePut, StoreRemove};
use crate::errors::{CommandError, CommandResult, Exit, fail};
use crate::local_file;
use crate::output::{Output, accept_damage, tell};
use crate::question;
use control::StoreView;
use runtime::Runtime;
use s3::plain::{self, Locked, PutError, Removed};
use serde_json::json;
use std::path::Path;
use store::{ObjectPath, Store};
use terminal::{Progress, count, human, shell_word, utc};

/// `store ls`.
pub fn list(arguments: &StoreList, out: &mut Output) -> CommandResult {
    with_view(&arguments.drive, arguments.damage.into(), |store| {
        accept_damage(&store.damage()?, out);
        match &arguments.what {
            None => {
                let (long, all) = (arguments.long, arguments.all);
                list_collections(store, long, all, arguments.null, out)
            }
            Some(what) => list_objects(store, what, arguments, out),
        }
    })
}

/// Lists all collections with their kinds.
pub fn collections(drive: &Path, out: &mut Output) -> CommandResult {
    with_view(drive, Access::Read, |store| {
        list_collections(store, true, true, false, out)
    })
}

/// Prints a line of a listing, which ends with the name.
fn list_line(front: &str, name: &[u8], null: bool, out: &mut Output) -> CommandResult {
    if out.is_json() {
        Ok(())
    } else if null {
        out.bytes(&[front.as_bytes(), name, b"\0"].concat())
    } else {
        let name = out.name(name);
        out.exact_line(format_args!("{front}{name}"))
    }
}

fn list_collections(
    store: &StoreView,
    long: bool,
    all: bool,
    null: bool,
    out: &mut Output,
) -> CommandResult {
    let mut values = Vec::new();
    for collection in store.collections()? {
        if collection.name.starts_with('.') && !all {
            continue;
        }
        let front = if long {
            let time = utc(collection.created_micros);
            format!("{time}  {:<9}  ", collection.kind())
        } else {
            String::new()
        };
        list_line(&front, collection.name.as_bytes(), null, out)?;
        values.push(collection);
    }
    out.value(&json!({ "collections": values }))
}

fn list_objects(
    store: &StoreView,
    ObjectPath {
        collection,
        object: prefix,
    }: &ObjectPath,
    arguments: &StoreList,
    out: &mut Output,
) -> CommandResult {
    let mut values = Vec::new();
    let count = store.for_each_object(collection, prefix, |object| {
        if out.is_json() {
            values.push(object.clone());
        }
        let front = if arguments.long {
            format!("{:>14}  {}  ", object.size, utc(object.modified_micros))
        } else {
            String::new()
        };
        list_line(&front, &object.name, arguments.null, out)
    })?;
    if count == 0 && !prefix.is_empty() {
        return fail!(
            NotFound,
            "no object in collection {collection:?} begins with {prefix:?}"
        );
    }
    out.value(&json!({ "collection": collection, "prefix": prefix, "objects": values }))
}

/// `store put`.
pub fn put(arguments: &StorePut, out: &mut Output) -> CommandResult {
    let (mut source, size) = local_file::source(&arguments.file)?;
    let target = &arguments.object;
    with_objects(&arguments.drive, |store| {
        check_name(store, &target.collection, out)?;
        let notes = notes(target, store.collection(&target.collection)?.is_none(), out);
        for note in &notes {
            tell(format_args!("note: {note}"));
        }
        let progress = Progress::bytes("storing", size);
        let name = (&*target.collection, &*target.object);
        let now = Runtime::system().unix_micros();
        let total = plain::put(store, name, &mut progress.reading(&mut source), size, now);
        let total = total.map_err(|error| match error {
            PutError::Source(error) => CommandError::file(&arguments.file, &error),
            PutError::Store(error) => error.into(),
            PutError::Locked(why) => locked(&out.name(&target.to_bytes()), why),
        })?;
        drop(progress);
        let (collection, object) = (&target.collection, &target.object);
        let shown = out.name(&target.to_bytes()).into_owned();
        out.line(format_args!("{shown}: {} stored", human(total)))?;
        let mut value = json!({ "collection": collection, "object": object, "bytes": total });
        if !notes.is_empty() {
            value["notes"] = notes.into();
        }
        out.value(&value)
    })
}

/// Notes on what S3 clients will not see of an object stored outside of S3. Notes on a collection appear once, when
/// it is created.
fn notes(target: &ObjectPath, is_new: bool, out: &Output) -> Vec<String> {
    let notes = s3::why_not_seen(&target.collection, is_new, &target.object).into_iter();
    let shown =
        |(what, name, why): (&str, &[u8], &str)| format!("{what} {}: {why}", out.name(name));
    notes.map(shown).collect()
}

/// `store get`.
pub fn get(arguments: &StoreGet, out: &mut Output) -> CommandResult {
    let target = &arguments.object;
    with_store(&arguments.drive, arguments.damage.into(), |store| {
        accept_damage(&store.damage()?, out);
        let reader = store.open(&target.collection, &target.object)?;
        let size = reader.info().size;
        let (start, end) = match arguments.range {
            Some(range) => (range.start, range.end.unwrap_or(size).min(size)),
            None => (0, size),
        };
        if start > size {
            return fail!(
                Usage,
                "the object has {size} bytes, the range begins at {start}"
            );
        }
        let mut file = local_file::destination(&arguments.file)?;
        let bytes = end.saturating_sub(start);
        let progress = Progress::bytes("reading", Some(bytes));
        let target = local_file::target(&mut file, out);
        progress.copy(&mut reader.range(start..end), target)?;
        drop(progress);
        let Some(file) = file else {
            return Ok(());
        };
        file.publish()?;
        let shown = arguments.file.display();
        out.line(format_args!("{shown}: {} read", human(bytes)))?;
        out.value(&json!({ "file": arguments.file.display().to_string(), "bytes": bytes }))
    })
}

/// The error for an object that S3's object lock protects from replacement and removal.
pub fn locked(object: &str, why: Locked) -> CommandError {
    let message = format_args!("{object}: kept by an object lock: {why}");
    CommandError::new(Exit::Refused, message)
        .hint("`zonestore store rm --break-locks` removes it all the same")
}

/// Refuses to remove locked objects.
fn check_locks(store: &Store, arguments: &StoreRemove, out: &Output) -> CommandResult {
    if arguments.break_locks {
        return Ok(());
    }
    let now = Runtime::system().unix_micros();
    let ObjectPath { collection, object } = &arguments.what;
    if !arguments.recursive {
        let why = plain::locked(store, collection, object, now)?;
        let refused = why.map(|why| locked(&out.name(&arguments.what.to_bytes()), why));
        return refused.map_or(Ok(()), Err);
    }
    let current = (collection.clone(), object.to_vec());
    let earlier = plain::earlier(store, collection, object)?;
    for (collection, prefix) in [current].into_iter().chain(earlier) {
        if let Some((name, why)) = plain::first_locked(store, &collection, &prefix, now)? {
            let path = ObjectPath {
                collection,
                object: name,
            };
            let which = match plain::version(&path.object) {
                Some((key, id)) => {
                    let bucket = &arguments.what.collection;
                    format!("{bucket}/{key}, version {id}").into_bytes()
                }
                None => path.to_bytes(),
            };
            return Err(locked(&out.name(&which), why));
        }
    }
    Ok(())
}

/// `store rm`.
pub fn remove(arguments: &StoreRemove, out: &mut Output) -> CommandResult {
    let ObjectPath { collection, object } = &arguments.what;
    with_objects(&arguments.drive, |store| {
        if object.is_empty() {
            check_alone(store, collection, out)?;
        }
        check_locks(store, arguments, out)?;
        let removed = if arguments.recursive {
            confirm_removal(store, arguments, out)?;
            let progress = Progress::steps("removing objects", None);
            let removed = remove_all(store, collection, object, &mut |n| progress.set(n))?;
            drop(progress);
            if !removed.damaged.is_empty() {
                return kept_damaged(&removed, arguments, out);
            }
            let removed = removed.objects;
            if object.is_empty() {
                plain::remove_bucket(store, collection)?;
            } else if removed == 0 {
                return fail!(
                    NotFound,
                    "no object in collection {collection:?} begins with {object:?}"
                );
            }
            removed
        } else if object.is_empty() {
            plain::remove_bucket(store, collection)?;
            0
        } else {
            plain::remove_one(store, collection, object)?;
            1
        };
        let shown = out.name(&arguments.what.to_bytes()).into_owned();
        out.line(format_args!(
            "{shown}: {} removed",
            count(removed, "object")
        ))?;
        out.value(&json!({ "objects_removed": removed, "collection_removed": object.is_empty() }))
    })
}

/// Removes all objects whose names begin with `prefix`, and their earlier versions first: an end in between leaves no
/// key that has earlier ones only, which the rules of a bucket do not remove.
fn remove_all(
    store: &Store,
    collection: &str,
    prefix: &[u8],
    each: &mut dyn FnMut(u64),
) -> store::Result<Removed> {
    let mut earlier = match plain::earlier(store, collection, prefix)? {
        Some((versions, prefix)) => plain::remove(store, &versions, &prefix, each)?,
        None => Removed::default(),
    };
    let before = earlier.objects;
    let current = plain::remove(store, collection, prefix, &mut |n| each(before + n))?;
    earlier.objects += current.objects;
    earlier.damaged.extend(current.damaged);
    Ok(earlier)
}

/// Names the objects that were not removed, and fails.
fn kept_damaged(removed: &Removed, arguments: &StoreRemove, out: &mut Output) -> CommandResult {
    let damaged: Vec<String> = removed.damaged.iter().map(ToString::to_string).collect();
    for why in &damaged {
        out.line(format_args!("not removed: {why}"))?;
    }
    out.value(&json!({
        "objects_removed": removed.objects, "collection_removed": false, "not_removed": damaged,
    }))?;
    let shown = out.name(&arguments.what.to_bytes()).into_owned();
    let kept = count(damaged.len() as u64, "object");
    fail!(
        Damaged, "{shown}: {} removed, and not {kept} with damaged metadata, named above", count(removed.objects, "object");
        "`zonestore store fsck {} --repair` moves what is left of them to the collection fsck-damaged, and the rest can be removed",
        shell_word(&arguments.drive)
    )
}

/// Asks before more than one named object is removed.
fn confirm_removal(store: &Store, arguments: &StoreRemove, out: &Output) -> CommandResult {
    if arguments.yes {
        return Ok(());
    }
    let ObjectPath { collection, object } = &arguments.what;
    let (mut objects, mut bytes) = plain::total(store, collection, object)?;
    if let Some((versions, prefix)) = plain::earlier(store, collection, object)? {
        let (earlier, more) = plain::total(store, &versions, &prefix)?;
        (objects, bytes) = (objects + earlier, bytes + more);
    }
    if objects == 0 {
        return Ok(());
    }
    let lost = format!(
        "removing {} from {} destroys {}, {}",
        out.name(&arguments.what.to_bytes()),
        arguments.drive.display(),
        count(objects, "object"),
        human(bytes)
    );
    question::confirm(false, &lost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::{MemoryDrive, profile};
    use kv_rocksdb::RocksDb;
    use std::sync::Arc;
    use store::{MkfsOptions, MountOptions, Transaction};

    #[test]
    fn earlier_versions_are_removed_while_the_current_ones_are_there() {
        let shape = profile::by_name("test-small").unwrap();
        let drive = MemoryDrive::new(shape.geometry(512 << 20, None).unwrap()).unwrap();
        let drive = Arc::new(drive);
        Store::mkfs(drive.clone(), &MkfsOptions::new(RocksDb)).unwrap();
        let store = Store::mount(drive, MountOptions::new(RocksDb)).unwrap();
        let mut transaction = Transaction::new();
        for collection in ["b", ".versions/b"] {
            transaction.create_collection(collection, Default::default());
        }
        store.commit(transaction).unwrap();
        let put = |collection, name: &str| {
            let body = &mut &b"x"[..];
            plain::put(&store, (collection, name.as_bytes()), body, Some(1), 1).unwrap();
        };
        put("b", "key");
        put(".versions/b", "key:1");
        let there = |collection| !store.list(collection, "", "", 1).unwrap().is_empty();
        let mut seen = Vec::new();
        let removed = remove_all(&store, "b", b"key", &mut |_| {
            seen.push((there(".versions/b"), there("b")));
        });
        assert_eq!(removed.unwrap().objects, 2);
        assert_eq!(seen, [(false, true), (false, false)]);
    }
}
