//! `store ls|put|get|rm`: objects in and out.

use super::{Access, with_store, with_view};
use crate::args::{ObjectPath, StoreGet, StoreList, StorePut, StoreRemove};
use crate::errors::{CommandError, CommandResult, Exit};
use crate::local_file::{self, Destination};
use crate::output::Output;
use crate::progress::Progress;
use crate::question;
use crate::size::{count, human};
use crate::time::utc;
use control::StoreView;
use control::api::{Object, Objects};
use serde_json::json;
use std::io;
use std::path::Path;
use store::{ObjectReader, Store, Transaction};

/// Objects listed at once, and removed in one transaction.
const PAGE: usize = 1000;
/// Bytes moved at once.
const CHUNK: usize = 1 << 20;

/// `COLLECTION` and what follows its slash.
fn split(what: &str) -> (&str, &str) {
    what.split_once('/').unwrap_or((what, ""))
}

/// Shows every object whose name begins with `prefix`, in order, a page at a time.
fn for_each_object(
    store: &StoreView,
    collection: &str,
    prefix: &str,
    mut each: impl FnMut(&Object) -> CommandResult,
) -> CommandResult<u64> {
    let mut which = Objects {
        collection: collection.to_owned(),
        prefix: prefix.to_owned(),
        from: String::new(),
        limit: PAGE,
    };
    let mut count = 0;
    loop {
        let page = store.objects(&which)?;
        page.iter().try_for_each(&mut each)?;
        count += page.len() as u64;
        match page.last() {
            // The smallest name behind the last one.
            Some(last) if page.len() == PAGE => which.from = format!("{}\0", last.name),
            _ => return Ok(count),
        }
    }
}

/// `store ls`.
pub fn list(arguments: &StoreList, out: &mut Output) -> CommandResult {
    with_view(&arguments.drive, arguments.damage.into(), |store| {
        out.accept_damage(&store.damage()?);
        match &arguments.what {
            None => list_collections(store, arguments, out),
            Some(what) => list_objects(store, what, arguments, out),
        }
    })
}

/// A line of a listing; the name is the last thing in it.
fn list_line(front: &str, name: &str, null: bool, out: &mut Output) -> CommandResult {
    if out.is_json() {
        Ok(())
    } else if null {
        out.bytes(format!("{front}{name}\0").as_bytes())
    } else {
        let name = out.name(name);
        out.exact_line(format_args!("{front}{name}"))
    }
}

fn list_collections(store: &StoreView, arguments: &StoreList, out: &mut Output) -> CommandResult {
    let mut values = Vec::new();
    for collection in store.collections()? {
        if collection.name.starts_with('.') && !arguments.all {
            continue;
        }
        let front = if arguments.long {
            format!("{}  ", utc(collection.created_micros))
        } else {
            String::new()
        };
        list_line(&front, &collection.name, arguments.null, out)?;
        values.push(collection);
    }
    out.value(&json!({ "collections": values }))
}

fn list_objects(
    store: &StoreView,
    what: &str,
    arguments: &StoreList,
    out: &mut Output,
) -> CommandResult {
    let (collection, prefix) = split(what);
    let mut values = Vec::new();
    let count = for_each_object(store, collection, prefix, |object| {
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
        return Err(CommandError::new(
            Exit::NotFound,
            format_args!("no object in collection {collection:?} begins with {prefix:?}"),
        ));
    }
    out.value(&json!({ "collection": collection, "prefix": prefix, "objects": values }))
}

/// `store put`.
pub fn put(arguments: &StorePut, out: &mut Output) -> CommandResult {
    let (mut source, size) = local_file::source(&arguments.file)?;
    let target = &arguments.object;
    if let Some(why) = s3::why_no_key(&target.object) {
        return Err(CommandError::new(Exit::Usage, why).context(out.name(&target.object)));
    }
    with_store(&arguments.drive, Access::Write, |store| {
        let is_new = store.collection(&target.collection)?.is_none();
        let notes = notes(target, is_new, out);
        for note in &notes {
            eprintln!("note: {note}");
        }
        let mut writer = store
            .writer(size)?
            .replacing(&target.collection, &target.object);
        let progress = Progress::bytes("storing", size);
        let mut object = s3::PlainObject::new();
        let mut buffer = vec![0; CHUNK];
        let mut total = 0;
        loop {
            let read = match source.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(CommandError::file(&arguments.file, &error)),
            };
            writer.write(&buffer[..read])?;
            object.update(&buffer[..read]);
            total += read as u64;
            progress.advance(read as u64);
        }
        let written = writer.finish()?;
        let mut transaction = Transaction::new();
        if is_new {
            s3::add_bucket(&mut transaction, &target.collection);
        }
        transaction.put(
            &target.collection,
            &target.object,
            written,
            object.attributes(),
        );
        store.commit(transaction)?;
        drop(progress);
        let (collection, object) = (&target.collection, &target.object);
        let shown = out.name(&format!("{collection}/{object}")).into_owned();
        out.line(format_args!("{shown}: {} stored", human(total)))?;
        let mut value = json!({ "collection": collection, "object": object, "bytes": total });
        if !notes.is_empty() {
            value["notes"] = notes.into();
        }
        out.value(&value)
    })
}

/// What S3 clients will not see of an object that is stored past S3. Of a collection it is said once,
/// when it is made.
fn notes(target: &ObjectPath, is_new: bool, out: &Output) -> Vec<String> {
    let collection = is_new
        .then(|| s3::why_no_bucket(&target.collection))
        .flatten()
        .map(|why| format!("collection {}: {why}", out.name(&target.collection)));
    let object = s3::why_not_listed(&target.object)
        .map(|why| format!("object {}: {why}", out.name(&target.object)));
    collection.into_iter().chain(object).collect()
}

/// `store get`.
pub fn get(arguments: &StoreGet, out: &mut Output) -> CommandResult {
    let target = &arguments.object;
    with_store(&arguments.drive, arguments.damage.into(), |store| {
        out.accept_damage(&store.damage()?);
        let reader = store.open(&target.collection, &target.object)?;
        let size = reader.info().size;
        let (start, end) = match arguments.range {
            Some(range) => (range.start, range.end.unwrap_or(size).min(size)),
            None => (0, size),
        };
        if start > size {
            return Err(CommandError::new(
                Exit::Usage,
                format_args!("the object has {size} bytes, the range begins at {start}"),
            ));
        }
        if arguments.file == Path::new("-") {
            copy(&reader, start, end, |bytes| out.bytes(bytes))
        } else {
            let mut file = Destination::create(&arguments.file)?;
            copy(&reader, start, end, |bytes| file.write(bytes))?;
            file.publish()?;
            let shown = arguments.file.display();
            out.line(format_args!(
                "{shown}: {} read",
                human(end.saturating_sub(start))
            ))?;
            out.value(&json!({ "file": arguments.file, "bytes": end.saturating_sub(start) }))
        }
    })
}

fn copy(
    reader: &ObjectReader,
    start: u64,
    end: u64,
    mut to: impl FnMut(&[u8]) -> CommandResult,
) -> CommandResult {
    let progress = Progress::bytes("reading", Some(end.saturating_sub(start)));
    let mut buffer = vec![0; CHUNK];
    let mut at = start;
    while at < end {
        let wanted = (end - at).min(CHUNK as u64) as usize;
        let read = reader.read_at(at, &mut buffer[..wanted])?;
        if read == 0 {
            break;
        }
        to(&buffer[..read])?;
        at += read as u64;
        progress.advance(read as u64);
    }
    Ok(())
}

/// `store rm`.
pub fn remove(arguments: &StoreRemove, out: &mut Output) -> CommandResult {
    let (collection, object) = split(&arguments.what);
    with_store(&arguments.drive, Access::Write, |store| {
        let removed = if arguments.recursive {
            confirm_removal(store, arguments, out)?;
            let removed = remove_objects(store, collection, object)?;
            if object.is_empty() {
                remove_collection(store, collection)?;
            } else if removed == 0 {
                return Err(CommandError::new(
                    Exit::NotFound,
                    format_args!("no object in collection {collection:?} begins with {object:?}"),
                ));
            }
            removed
        } else if object.is_empty() {
            remove_collection(store, collection)?;
            0
        } else {
            let mut transaction = Transaction::new();
            transaction.remove(collection, object);
            store.commit(transaction)?;
            1
        };
        let shown = out.name(&arguments.what).into_owned();
        out.line(format_args!(
            "{shown}: {} removed",
            count(removed, "object")
        ))?;
        out.value(&json!({ "objects_removed": removed, "collection_removed": object.is_empty() }))
    })
}

/// Asks before more than one named object goes.
fn confirm_removal(store: &Store, arguments: &StoreRemove, out: &Output) -> CommandResult {
    if arguments.yes {
        return Ok(());
    }
    let (collection, prefix) = split(&arguments.what);
    let (mut objects, mut bytes) = (0, 0);
    let mut from = String::new();
    loop {
        let page = store.list(collection, prefix, &from, PAGE)?;
        let Some(last) = page.last() else { break };
        from = format!("{}\0", last.name);
        objects += page.len() as u64;
        bytes += page.iter().map(|object| object.size).sum::<u64>();
    }
    if objects == 0 {
        return Ok(());
    }
    let lost = format!(
        "removing {} from {} destroys {}, {}",
        out.name(&arguments.what),
        arguments.drive.display(),
        count(objects, "object"),
        human(bytes)
    );
    question::confirm(false, &lost)
}

fn remove_objects(store: &Store, collection: &str, prefix: &str) -> CommandResult<u64> {
    let progress = Progress::steps("removing objects", None);
    let mut removed = 0;
    loop {
        let page = store.list(collection, prefix, "", PAGE)?;
        if page.is_empty() {
            return Ok(removed);
        }
        let mut transaction = Transaction::new();
        for object in &page {
            transaction.remove(collection, &object.name);
        }
        store.commit(transaction)?;
        removed += page.len() as u64;
        progress.set(removed);
    }
}

/// Removes an empty collection, with what the S3 side keeps for its unfinished uploads.
fn remove_collection(store: &Store, collection: &str) -> CommandResult {
    let mut transaction = Transaction::new();
    let uploads = s3::uploads_of(collection);
    if store.collection(&uploads)?.is_some() {
        if store.list(collection, "", "", 1)?.is_empty() {
            remove_objects(store, &uploads, "")?;
        }
        transaction.remove_collection(&uploads);
    }
    transaction.remove_collection(collection);
    Ok(store.commit(transaction)?)
}
