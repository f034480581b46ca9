//! `zonestore serve`: serves a drive as an S3 endpoint.
//!
//! Order: address, drive, store, control socket, port, keys; then the line with the address. After a signal, requests
//! under way are completed, and then the store is unmounted.

use crate::args::{Format, NewDrive, ServeArguments};
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, Exit, FREE_HOST, OPEN_FILES, fail, sorted};
use crate::output::Output;
use crate::plan::Plan;
use crate::store_commands;
use control::Socket;
use daemon::keys::{self, Keys, KeysError, Source};
use daemon::settings::{Log, LogFormat, Parsed, Serve, Settings, Trace};
use daemon::{Daemon, Ended, Judge, Live, memory};
use device::stats::Stats;
use device::{Drive, FileDrive, ShapeRequest, ZonedDevice};
use kv_rocksdb::RocksDb;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use s3::{ACCESS, AUDIT, Config, Listener, Server};
use serde_json::json;
use status::{Access, Known, Served, Status};
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use store::{MountOptions, ScrubPlan, Store};
use terminal::{Apart, LogFiles, Logging};
use traces::Collector;

const NO_DRIVE: &str = "no drive is named";
const LOOK: &str = "look after the drive, then start the server again";
/// How often, and at what intervals, a server that starts anew tries what the one before may still hold.
const TRIES: u32 = 50;
const TRY_AGAIN: Duration = Duration::from_millis(100);
/// Open files without which a server does not start: twice what it has open before its first connection.
pub const LEAST_OPEN_FILES: u64 = 32;

/// Serves until a signal comes.
pub fn run(
    arguments: &ServeArguments,
    log_format: Option<Format>,
    out: &mut Output,
) -> CommandResult {
    raise_open_files(LEAST_OPEN_FILES)?;
    let mut begun = None;
    let served = loop {
        match serve(arguments, log_format, &mut begun, out) {
            // A start that fails ends the server, as any does.
            Ok(Ended::Mended) => tracing::info!("the server starts anew"),
            ended => break ended.map(drop),
        }
    };
    if let Some(Begun {
        logs, collector, ..
    }) = begun
    {
        if let Some(collector) = collector {
            collector.stop();
        }
        logs.finish();
    }
    served
}

/// Calls `start` again for a while if it fails and is not the first of this process.
fn with_patience<T>(
    is_first: bool,
    mut start: impl FnMut() -> CommandResult<T>,
) -> CommandResult<T> {
    let mut started = start();
    for _ in 1..TRIES {
        if is_first || started.is_ok() {
            break;
        }
        std::thread::sleep(TRY_AGAIN);
        started = start();
    }
    started
}

/// Tells whether the configuration, as it is then, lets a server of the same drive begin.
fn may_begin(arguments: &ServeArguments, drive: &Path) -> impl Fn() -> bool + Send + use<> {
    let (config, said, drive) = (arguments.config.clone(), arguments.said(), drive.to_owned());
    move || {
        let settings = config.as_deref().map(Settings::load).transpose();
        let plan = settings
            .ok()
            .and_then(|read| Plan::of(read.as_ref(), said.clone()).ok());
        plan.is_some_and(|plan| plan.serve.drive.as_ref() == Some(&drive))
    }
}

/// What a server that starts anew keeps.
struct Begun {
    logs: LogFiles,
    collector: Option<Collector>,
    /// With the port that was free.
    address: SocketAddr,
}

/// Serves once, from opening the drive to unmounting its store.
fn serve(
    arguments: &ServeArguments,
    log_format: Option<Format>,
    begun: &mut Option<Begun>,
    out: &mut Output,
) -> CommandResult<Ended> {
    let is_first = begun.is_none();
    let settings = arguments.config.as_deref();
    let settings = settings.map(Settings::load).transpose()?;
    // A wrong configuration is refused before anything else is touched.
    let said_here = arguments.said();
    let plan = Plan::of(settings.as_ref(), said_here.clone())?;
    let judge: Judge = Box::new(move |settings| {
        let plan = Plan::of(Some(settings), said_here.clone()).map_err(|error| error.message)?;
        plan.serve
            .drive
            .map(drop)
            .ok_or_else(|| NO_DRIVE.to_owned())
    });
    let (serve, shape, address) = (plan.serve, plan.shape, plan.address);
    let Some(path) = serve.drive.clone() else {
        return fail!(Usage, "{NO_DRIVE}"; "name one, or say drive = in [serve] of the configuration");
    };
    let begun = match begun {
        Some(begun) => begun,
        None => {
            let (logs, collector) = log(&plan.log, log_format, &plan.trace)?;
            begun.insert(Begun {
                logs,
                collector,
                address,
            })
        }
    };
    let logs = &begun.logs;
    // Before anything is created: without the port, there is nothing to serve.
    let listener = with_patience(is_first, || Ok(Listener::reserve(begun.address)?))?;
    begun.address = listener.local_addr();
    let drive = with_patience(is_first, || {
        open_drive(&path, &serve, &shape, plan.caches.0)
    })?;
    let device = Arc::new(Stats::new(drive.clone() as Arc<dyn ZonedDevice>));
    let store = mount(&path, &serve, plan.caches, device.clone())?;
    if let Err(error) = archive::check_finished(&store) {
        store.unmount()?;
        return Err(CommandError::from(error).context(path.display()));
    }
    // The socket exists before the port answers, so that a client of the port finds it.
    let control = Socket::beside(&path)
        .map_err(|error| tracing::warn!(%error, "other commands cannot ask this server"))
        .ok();
    let stops_on_failure = serve.exit_on_failure.unwrap_or_default();
    // Only now: a drive that is refused gets no keys.
    let live = Live::start(settings, &path, judge).map_err(CommandError::from);
    let served = live.and_then(|live| {
        listener.listen()?;
        let told = Served {
            name: path.display().to_string(),
            device,
            store: store.clone(),
            lost_lines: Box::new({
                let logs = logs.clone();
                move || logs.lost()
            }),
        };
        let keyring = live.keyring.clone();
        let page_keys = status::Keys::new(move |key, secret| match keyring.is_admin(key, secret) {
            Some(true) => Known::Admin,
            Some(false) => Known::Limited,
            None => Known::Stranger,
        });
        let access = said(&serve.status_page);
        let config = Config {
            domain: serve.s3_domain.clone(),
            quotas: live.quotas.clone(),
            tls: live.tls.clone(),
            status: Some(Arc::new(Status::new(access, page_keys, told))),
            ..Config::new(address, live.keyring.clone())
        };
        let (keys, has_tls) = (live.keys.clone(), live.tls.is_some());
        let has_page = access != Access::Off;
        let daemon = Daemon {
            drive: drive.clone(),
            store: store.clone(),
            control,
            server: Server::new(listener, config, store.clone()),
            live,
            reopen_logs: Box::new({
                let logs = logs.clone();
                move || logs.reopen()
            }),
            stops_on_failure,
            may_begin: Box::new(may_begin(arguments, &path)),
        };
        daemon::serve(daemon, |address| match is_first {
            true => announce(&path, address, has_tls, has_page, &keys, out),
            false => Ok(()),
        })
    });
    let failure = store.failure();
    let stopped = store.unmount();
    match (served?, failure) {
        (Ended::Failed, Some(reason)) => {
            let path = path.display();
            fail!(
                WritesStopped, "{path}: nothing could be written any more: {reason}"; "{LOOK}"
            )
        }
        // The store could not write before, nor can its unmount. But a flush that has failed since would be forgotten.
        (Ended::Mended, _) => match drive.flush() {
            Ok(()) => Ok(Ended::Mended),
            Err(error) => {
                fail!(WritesStopped, "{}: {error}", path.display(); "{LOOK}")
            }
        },
        (ended, _) => {
            stopped?;
            tracing::info!("the store is unmounted");
            Ok(ended)
        }
    }
}

/// Raises the limit of open files, which a connection and a file of the database take one each of, to what this process
/// may have: the usual one is for programs that know no larger numbers.
///
/// # Errors
/// The process may have fewer than `least`.
pub fn raise_open_files(least: u64) -> CommandResult {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.maximum;
    // What is refused leaves the limit as it was.
    let _ = setrlimit(Resource::Nofile, Rlimit { current, ..limit });
    match getrlimit(Resource::Nofile).current {
        Some(most) if most < least => fail!(
            Failed, "{most} files may be open at once, and a server needs {least}"; "{OPEN_FILES}"
        ),
        _ => Ok(()),
    }
}

/// Starts logging and tracing as the configuration and the command line say.
fn log(
    log: &Log,
    format: Option<Format>,
    trace: &Trace,
) -> CommandResult<(LogFiles, Option<Collector>)> {
    let json = match format {
        Some(format) => format == Format::Json,
        None => log
            .format
            .as_ref()
            .is_some_and(|format| format.value == LogFormat::Json),
    };
    let to = |path: &Option<PathBuf>, otherwise| path.clone().map_or(otherwise, Apart::File);
    let logging = Logging {
        json,
        usual: "info",
        // Request headers that hold secrets are marked as such where requests come in (`s3`); `s3s` prints whole
        // requests with their signed addresses.
        kept_out: "s3s",
        file: log.file.clone(),
        apart: vec![
            (ACCESS, to(&log.access, Apart::Nowhere)),
            (AUDIT, to(&log.audit, Apart::WithOthers)),
            (traces::TARGET, Apart::Nowhere),
        ],
    };
    let collecting = trace.to.as_ref().map(|to| {
        let collecting = Collector::start(&to.value, said(&trace.ratio));
        collecting.map_err(|error| CommandError::new(Exit::Usage, error))
    });
    let (collector, layer) = collecting.transpose()?.unzip();
    let files = terminal::log(logging, layer);
    let files = files.map_err(|error| CommandError::host(&error, &error))?;
    Ok((files, collector))
}

fn open_drive(
    path: &Path,
    serve: &Serve,
    shape: &NewDrive,
    cache: u64,
) -> CommandResult<Arc<Drive>> {
    let creates = serve.create.unwrap_or_default();
    if creates && std::fs::symlink_metadata(path).is_err() {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|e| CommandError::folder(folder, &e))?;
        }
        let shape = ShapeRequest::from(shape);
        let geometry = drive_file::geometry(&shape)?;
        // With its store: without one, and cut short, it would look like a drive that has lost its store.
        FileDrive::create_filled(path, &geometry, shape.profile(), |drive| make_store(drive))?;
        return Ok(Arc::new(memory::beside_cache(
            drive_file::open(path)?,
            cache,
        )));
    }
    let drive = drive_file::open(path)?;
    drive_file::check_shape(&drive, shape)?;
    Ok(Arc::new(memory::beside_cache(drive, cache)))
}

fn make_store(drive: Arc<dyn ZonedDevice>) -> CommandResult {
    let (_, made) = store_commands::make(drive, false, None)?;
    if let Some(why) = made.one_copy {
        tracing::warn!(%why, "metadata is in one copy");
    }
    Ok(())
}

fn scrub_plan(serve: &Serve) -> ScrubPlan {
    let every = serve.scrub_every.as_ref().map(|every| every.value.0);
    let plan = match every {
        None => ScrubPlan::DEFAULT,
        Some(None) => ScrubPlan::NEVER,
        Some(data_every) => ScrubPlan {
            data_every,
            ..ScrubPlan::DEFAULT
        },
    };
    let pace = serve.scrub_pace.as_ref();
    let pace = pace.map_or(ScrubPlan::DEFAULT.pace, |pace| pace.value);
    ScrubPlan { pace, ..plan }
}

pub fn mount(
    path: &Path,
    serve: &Serve,
    (data_cache_bytes, block_cache_bytes): (u64, u64),
    drive: Arc<dyn ZonedDevice>,
) -> CommandResult<Store> {
    let mut options = MountOptions {
        pace: said(&serve.clean_pace),
        hours: said(&serve.clean_hours),
        free_zones: said(&serve.clean_free_zones),
        scrub: scrub_plan(serve),
        data_cache_bytes,
        block_cache_bytes,
        ..MountOptions::new(RocksDb)
    };
    options.data.compression = said(&serve.compression);
    match Store::mount(drive.clone(), options.clone()) {
        Err(store::Error::NotFormatted) if serve.create == Some(true) => {
            make_store(drive.clone())?;
            Ok(Store::mount(drive, options)?)
        }
        Err(error @ store::Error::NotFormatted) => {
            Err(CommandError::from(error).hint(store_commands::make_one(path)))
        }
        mounted => Ok(mounted?),
    }
}

/// The given value, or the default, which is the store's own.
fn said<T: Clone + Default>(value: &Option<Parsed<T>>) -> T {
    value
        .as_ref()
        .map_or_else(T::default, |value| value.value.clone())
}

/// Prints the greeting of a server. If nobody can read it, the server serves nevertheless.
pub fn greet(out: &mut Output, greeting: impl FnOnce(&mut Output) -> CommandResult) {
    if let Err(error) = greeting(out).and_then(|()| out.flush()) {
        out.discard();
        tracing::warn!(%error, "the greeting could not be printed");
    }
}

/// Prints the endpoint, the location of the keys, and example commands.
fn announce(
    drive: &Path,
    address: SocketAddr,
    has_tls: bool,
    has_page: bool,
    keys: &Keys,
    out: &mut Output,
) -> CommandResult {
    let client = keys.client(address, has_tls)?;
    let scheme = if has_tls { "https" } else { "http" };
    greet(out, |out| {
        out.line(format_args!(
            "ZoneStore serves {} at {scheme}://{address}",
            drive.display()
        ))?;
        // Secrets do not go to logs: they are printed only on a terminal.
        for line in keys.in_words(&client, std::io::stdout().is_terminal()) {
            out.line(format_args!("{line}"))?;
        }
        if has_page {
            let address = daemon::reachable(address);
            out.line(format_args!(
                "What it does is shown at {scheme}://{address}/-/ (docs/status-page.md)"
            ))?;
        }
        out.line(format_args!("{}", daemon::how_to_stop()))?;
        let file = match &keys.source {
            Source::File { path, .. } => Some(path.display().to_string()),
            Source::Environment | Source::Configuration { .. } => None,
        };
        out.value(&json!({
            "endpoint": format!("{scheme}://{address}"), "drive": drive.display().to_string(), "keys_file": file,
            "access_key": keys.access_key,
        }))
    });
    Ok(())
}

impl From<KeysError> for CommandError {
    fn from(error: KeysError) -> Self {
        use KeysError as E;
        const NEW: &str =
            "name another file, or move this one away: new keys are made at the next start";
        if let E::Readable(error) = error {
            return error.into();
        }
        if let E::File { path, source } = &error {
            let (access, secret) = (keys::ACCESS_KEY_VARIABLE, keys::SECRET_KEY_VARIABLE);
            let no_file = format!("set {access} and {secret}");
            let hint = match source.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => format!(
                    "let the user who serves read and write it, or {no_file}, which need no file"
                ),
                io::ErrorKind::StorageFull => FREE_HOST.to_owned(),
                io::ErrorKind::InvalidData | io::ErrorKind::FileTooLarge => NEW.to_owned(),
                _ => format!("{no_file} to do without the file"),
            };
            return Self::file(path, source).hint(hint);
        }
        sorted! { error:
            E::OneVariable { .. } => Usage,
                "set both, or neither to use the key file beside the drive";
            E::ShortSecret => Usage,
                "give it a longer one, or unset both to use the key file beside the drive";
            E::EmptyVariable { .. } => Usage,
                "give it a value, or unset both to use the key file beside the drive";
            E::NoKeys { .. } => Damaged, NEW;
            E::DeadLink { .. } => NotFound,
                "make what it points to, or move the link away: new keys are made then";
            E::Random(_) | E::File { .. } | E::Readable(_) => Failed;
        }
    }
}
