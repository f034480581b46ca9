//! `store import|restore`: restores objects from tar archives to a store.

use super::archived::{damage, left_out, report};
use super::names::check_name;
use super::{Access, GOES_ON, is_of_full_host, with_store};
use crate::args::{StoreImport, StoreRestore};
use crate::errors::{CommandError, CommandResult, Exit};
use crate::local_file;
use crate::output::Output;
use archive::{Checked, ImportOptions, Imported, Keeper, Kind, Place, Put, Restored};
use runtime::Runtime;
use s3::plain::{self, Arrival};
use serde_json::json;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use store::{Attributes, CollectionInfo, Name, Store, Transaction};
use terminal::{Progress, count, human, utc};

fn source(path: &Path) -> CommandResult<BufReader<Box<dyn Read>>> {
    let (source, _) = local_file::source(path)?;
    Ok(BufReader::with_capacity(1 << 20, source))
}

/// Restores into S3 buckets: existing versions and locked objects stay.
#[derive(Debug)]
struct Buckets;

fn locked(why: plain::Locked) -> String {
    format!("kept by an object lock: {why}")
}

impl Keeper for Buckets {
    fn complete(
        &self,
        store: &Store,
        transaction: &mut Transaction,
        collection: &CollectionInfo,
    ) -> store::Result<()> {
        plain::complete_bucket(store, transaction, collection)
    }

    fn place(
        &self,
        store: &Store,
        object: (&str, &Name),
        attributes: &Attributes,
        overwrite: bool,
    ) -> store::Result<Place> {
        let now = Runtime::system().unix_micros();
        let arrival = plain::arrival(store, object, attributes, overwrite, now)?;
        Ok(match arrival {
            Arrival::Put => Place::Put,
            Arrival::NewVersion => Place::Above,
            Arrival::Kept => Place::Kept,
            Arrival::Newer => Place::Newer,
            Arrival::LeftOut => Place::LeftOut,
            Arrival::Locked(why) => Place::Refused(locked(why)),
        })
    }

    fn above(
        &self,
        store: &Store,
        transaction: &mut Transaction,
        (bucket, key): (&str, &Name),
        attributes: Attributes,
        put: Put<'_>,
    ) -> store::Result<Option<String>> {
        let now = Runtime::system().unix_micros();
        // A name that is not UTF-8 has no versions, so nothing can be put above it.
        let key = key.text().unwrap_or_default();
        let refused = plain::put_above(store, transaction, (bucket, key), attributes, now, put)?;
        Ok(refused.map(locked))
    }
}

/// `store import`.
pub fn import(arguments: &StoreImport, out: &mut Output) -> CommandResult {
    let source = source(&arguments.archive)?;
    let options = ImportOptions {
        overwrite: arguments.overwrite,
        to: arguments.into.clone(),
        keeper: Some(&Buckets),
    };
    with_store(&arguments.drive, Access::Write, |store| {
        if let Some(to) = &arguments.into {
            check_name(store, &to.collection, out)?;
        }
        let mut imported = Imported::default();
        let progress = Progress::bytes("reading", None);
        let done = archive::import(store, source, &options, &mut imported, &mut |bytes| {
            progress.set(bytes);
        });
        drop(progress);
        let (objects, bytes) = (count(imported.objects, "object"), human(imported.bytes));
        done.map_err(|error| {
            let shown = arguments.archive.display();
            let made = CommandError::from(error).context(shown);
            match imported.objects {
                0 => made.context("nothing was stored"),
                _ => made.context(format_args!("{objects}, {bytes}, stored before this")),
            }
        })?;
        let shown = arguments.drive.display();
        out.line(format_args!("{shown}: {objects}, {bytes}, stored"))?;
        if imported.kept > 0 {
            let kept = count(imported.kept, "object");
            let hint = match arguments.overwrite {
                true => "",
                false => " (--overwrite replaces them)",
            };
            out.line(format_args!(
                "{kept} there already, or newer versions of them, and left as they are{hint}"
            ))?;
        }
        if imported.newer > 0 {
            let newer = count(imported.newer, "object");
            let hint = match arguments.overwrite {
                true => "",
                false => " (--overwrite puts an archive's current versions above those)",
            };
            out.line(format_args!(
                "{newer} left out, newer than the current versions there{hint}"
            ))?;
        }
        if imported.left_out > 0 {
            let left = count(imported.left_out, "earlier version");
            out.line(format_args!(
                "{left} left out, of buckets that keep no versions here: switch versions on and import again"
            ))?;
        }
        damage(&imported.damaged, out)?;
        out.value(&imported)?;
        left_out(&arguments.archive, &imported.damaged, imported.unnamed)
    })
}

/// `store restore`.
pub fn restore(arguments: &StoreRestore, out: &mut Output) -> CommandResult {
    let Some(to) = &arguments.to else {
        return check(&arguments.archives, out);
    };
    let sources = arguments.archives.iter().map(|path| source(path));
    let sources = sources.collect::<CommandResult<Vec<_>>>()?;
    with_store(to, Access::Write, |store| {
        let mut restored = Restored::default();
        let progress = Progress::bytes("reading", None);
        let done = archive::restore(store, sources, &mut restored, &mut |bytes| {
            progress.set(bytes)
        });
        drop(progress);
        done.map_err(|error| {
            let whole = restored.archives as usize;
            let wrong = match &error {
                archive::Error::NotNext { number } => number - 1,
                _ => whole,
            };
            let at = arguments.archives.get(wrong).or(arguments.archives.last());
            let shown = at.map_or(to, |path| path).display();
            let mut made = CommandError::from(error).context(shown);
            if is_of_full_host(&made, store) {
                made = made.hint(GOES_ON);
            } else if made.exit == Exit::NoSpace {
                made = made.hint(
                    "restore to an empty store on a larger drive; `store mkfs DRIVE --force` gives up what is on this one",
                );
            }
            match restored.stored {
                0 => made,
                stored => made.context(format_args!(
                    "{} restored before this",
                    count(stored, "object")
                )),
            }
        })?;
        report(to, &restored, &restored.damaged, out)?;
        left_out(to, &restored.damaged, restored.unnamed)
    })
}

fn check(archives: &[PathBuf], out: &mut Output) -> CommandResult {
    let mut found: Vec<Checked> = Vec::new();
    for path in archives {
        let progress = Progress::bytes("reading", None);
        let checked = archive::check(source(path)?, &mut |bytes| progress.set(bytes));
        drop(progress);
        let checked = checked.map_err(|error| CommandError::from(error).context(path.display()))?;
        out.line(format_args!(
            "{}: whole: {} of {}, with {}, {}, and {} in its list",
            path.display(),
            checked.kind.words(),
            utc(checked.created_micros),
            count(checked.objects, "object"),
            human(checked.bytes),
            checked.listed
        ))?;
        damage(&checked.damaged, out)?;
        found.push(checked);
    }
    archive::check_chain(&found).map_err(|error| {
        let wrong = match &error {
            archive::Error::NotNext { number } => number - 1,
            _ => 0,
        };
        let made = CommandError::from(error);
        match archives.get(wrong) {
            Some(path) => made.context(path.display()),
            None => made,
        }
    })?;
    out.value(&json!({ "archives": found }))?;
    // A restore takes what is damaged in an earlier one from the last one; exports do not build on each other.
    let is_export = |one: &Checked| one.kind == Kind::Export;
    let counts = |number| number + 1 == found.len() || found.iter().all(is_export);
    let mut each = archives.iter().zip(&found).enumerate();
    each.try_for_each(|(number, (path, one))| match counts(number) {
        true => left_out(path, &one.damaged, one.unnamed),
        false => Ok(()),
    })
}
