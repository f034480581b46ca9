//! `store export|backup`: writes a store to a tar archive, or to another drive.

use super::archived::{complete, damage, report};
use super::{Access, is_of_full_host, mounted};
use crate::args::{ArchiveTarget, StoreBackup, StoreExport};
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, Exit, fail};
use crate::local_file;
use crate::output::{Output, tell};
use archive::{PackOptions, Packed, Restored, Selection, Since};
use control::Opened;
use runtime::Runtime;
use s3::plain;
use serde_json::json;
use std::cell::Cell;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use store::Store;
use terminal::{Progress, count, human};

/// `store export`.
pub fn export(arguments: &StoreExport, out: &mut Output) -> CommandResult {
    let part = arguments.what.as_ref().map(|what| {
        let mut collections = vec![what.collection.clone()];
        if what.object.is_empty() {
            collections.push(plain::uploads_of(&what.collection));
            collections.push(plain::versions_of(&what.collection));
        }
        (collections, what.object.clone())
    });
    let options = options(Selection::Export(part), &arguments.target);
    let source = Source {
        drive: &arguments.drive,
        since: None,
        bytes: Cell::default(),
    };
    to_file(
        &source,
        &options,
        &arguments.to,
        arguments.target.force,
        out,
    )
}

/// `store backup`.
pub fn backup(arguments: &StoreBackup, out: &mut Output) -> CommandResult {
    let options = options(Selection::Backup, &arguments.target);
    let to = &arguments.to;
    if inspect::drive_at(to).is_some() {
        if arguments.since.is_some() {
            return fail!(Usage, "--since: a drive has no archives"; "leave it out, or name a file in --to");
        }
        return to_drive(&arguments.drive, to, &options, out);
    }
    if let Some(since) = &arguments.since
        && may_build_on(since, to)
    {
        return fail!(
            Usage, "{}: an earlier backup of the same store, on which {} may build; it is not overwritten",
            to.display(), since.display(); "name another file: a restore needs all backups on which an incremental one builds"
        );
    }
    let source = Source {
        drive: &arguments.drive,
        since: arguments.since.as_deref(),
        bytes: Cell::default(),
    };
    to_file(&source, &options, to, arguments.target.force, out)
}

/// Whether the archive `to`, which is going to be overwritten, is `since` itself or a backup of the same store: it may be
/// one of those on which `since` builds.
fn may_build_on(since: &Path, to: &Path) -> bool {
    let store = |path: &Path| {
        let file = local_file::regular(path).ok()?;
        Some(Since::open(file).ok()?.store().to_owned())
    };
    store(to).is_some_and(|of| store(since) == Some(of))
}

/// The source of an archive.
struct Source<'a> {
    drive: &'a Path,
    /// The backup that an incremental one builds on.
    since: Option<&'a Path>,
    /// Bytes that the objects take on the target, once known.
    bytes: Cell<u64>,
}

impl Source<'_> {
    /// Makes the archive, or asks the drive's server to make it.
    fn pack(&self, options: &PackOptions, mut target: impl Write) -> CommandResult<Packed> {
        let progress = Progress::bytes("writing", None);
        let drive = match (&options.selection, self.since) {
            (Selection::Export(_), _) => drive_file::open_read_only(self.drive)?,
            (Selection::Backup, _) => match drive_file::open_or_ask(self.drive, false)? {
                Opened::Drive(drive) => drive,
                Opened::Served(client) => {
                    let whole = |path: &Path| {
                        path.canonicalize()
                            .map_err(|error| CommandError::file(path, &error))
                    };
                    let what = control::api::Backup {
                        since: self.since.map(whole).transpose()?,
                        now_micros: options.now_micros,
                        skip_damaged: options.skip_damaged,
                    };
                    self.bytes.set(client.space()?.live_bytes);
                    let packed =
                        client.backup(&what, &mut target, &mut |bytes| progress.set(bytes))?;
                    target.flush()?;
                    return Ok(packed);
                }
            },
        };
        let mut since = match self.since {
            None => None,
            Some(path) => {
                let since = Since::open(local_file::regular(path)?);
                Some(since.map_err(|error| CommandError::from(error).context(path.display()))?)
            }
        };
        mounted(drive, Access::Read, |store| {
            self.bytes.set(store.statfs().live_bytes);
            let progress = &mut |bytes| progress.set(bytes);
            Ok(archive::pack(
                store,
                target,
                options,
                since.as_mut(),
                progress,
            )?)
        })
    }
}

fn options(selection: Selection, target: &ArchiveTarget) -> PackOptions {
    PackOptions {
        selection,
        now_micros: Runtime::system().unix_micros(),
        skip_damaged: target.skip_damaged,
        is_served: false,
    }
}

fn to_file(
    source: &Source<'_>,
    options: &PackOptions,
    to: &Path,
    force: bool,
    out: &mut Output,
) -> CommandResult {
    let mut file = local_file::new_archive(to, force)?;
    let target = BufWriter::with_capacity(1 << 20, local_file::target(&mut file, out));
    let packed = source.pack(options, target)?;
    let Some(file) = file else {
        for what in &packed.damaged {
            tell(format_args!("zonestore: damaged: {what}"));
        }
        return complete(to, &packed);
    };
    file.publish_durably()?;
    let shown = to.display();
    let unchanged = match options.selection {
        Selection::Backup => format!(", {} unchanged", count(packed.unchanged, "object")),
        Selection::Export(_) => String::new(),
    };
    out.line(format_args!(
        "{shown}: {}, {}{unchanged}",
        count(packed.objects, "object"),
        human(packed.bytes)
    ))?;
    damage(&packed.damaged, out)?;
    let mut value = serde_json::to_value(&packed)?;
    value["archive"] = json!(to.display().to_string());
    out.value(&value)?;
    complete(to, &packed)
}

/// Adapts an error on the target drive. A full target is of no use any more.
fn of_target(error: CommandError, target: &Store, needed: u64) -> CommandError {
    if error.exit != Exit::NoSpace {
        return error;
    }
    if is_of_full_host(&error, target) {
        return error.hint(
            "free space on the host's disk (`df -h` shows it), or raise the limit on the size of files (`ulimit -f`); \
             this drive has a part of the objects: behind `store mkfs --force` on it, the same command begins again",
        );
    }
    let (room, needed) = (human(target.statfs().capacity_bytes), human(needed));
    let why = error.message;
    let message = format_args!(
        "too small: there is room for {room}, and the objects take {needed} where they are ({why})"
    );
    CommandError::new(Exit::NoSpace, message)
        .hint(
            "make a larger drive and `store mkfs` on it; objects that share bytes or are compressed take more there. \
             This one has a part of them, and is of use again by `store mkfs --force`",
        )
}

/// Copies from one drive to another, through the same checksums as an archive.
fn to_drive(from: &Path, to: &Path, options: &PackOptions, out: &mut Output) -> CommandResult {
    if from.canonicalize().ok() == to.canonicalize().ok() {
        return fail!(Usage, "--to names the drive itself"; "name another one, or a file");
    }
    let mut restored = Restored::default();
    let source = Source {
        drive: from,
        since: None,
        bytes: Cell::default(),
    };
    let packed = mounted(drive_file::open(to)?, Access::Write, |target| {
        let (reader, writer) = io::pipe()?;
        std::thread::scope(|scope| {
            let restored = &mut restored;
            let place = move || archive::restore(target, vec![reader], restored, &mut |_| ());
            let placing = runtime::thread::spawn_scoped(scope, place)
                .map_err(|error| CommandError::thread(&error))?;
            let packed = source.pack(options, BufWriter::with_capacity(1 << 20, writer));
            let placed = placing.join();
            let placed = placed.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            match (packed, placed) {
                // The side that stopped first has the cause.
                (Err(error), Ok(())) => Err(error),
                (Err(error), Err(archive::Error::CutOff { .. })) => Err(error),
                (_, Err(error)) => {
                    Err(of_target(error.into(), target, source.bytes.get()).context(to.display()))
                }
                (Ok(packed), Ok(())) => Ok(packed),
            }
        })
    })?;
    report(to, &restored, &packed.damaged, out)?;
    complete(to, &packed)
}
