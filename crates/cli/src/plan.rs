//! Validates a server's options before anything is created or opened for writing. Both `serve`, which then carries
//! out the plan, and `config check` use it, so that they always agree.

use crate::args::NewDrive;
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, Exit, fail};
use crate::store_commands;
use daemon::memory;
use daemon::settings::{Log, Parsed, Serve, Settings, Shape, Trace};
use device::{Drive, MemoryDrive, ShapeRequest, ZonedDevice};
use inspect::Content;
use s3::{Key, Tls};
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use terminal::{LogFile, Size, shell_word};
use zone::Geometry;

/// Default address to listen at.
const ADDRESS: &str = "127.0.0.1:9000";

/// The validated options.
pub struct Plan {
    /// Drive and service options.
    pub serve: Serve,
    /// Shape of a drive that is to be created.
    pub shape: NewDrive,
    /// Log options.
    pub log: Log,
    /// Destination of trace spans.
    pub trace: Trace,
    /// Address to listen at.
    pub address: SocketAddr,
    /// Bytes of the data cache and of the metadata cache.
    pub caches: (u64, u64),
    /// Keys in the configuration.
    pub keys: Vec<Key>,
    /// Certificate and key for TLS.
    pub tls: Option<Tls>,
}

impl Plan {
    /// Plans from the command line and, where it is silent, the configuration. The drive may be left out.
    pub fn of(
        settings: Option<&Settings>,
        (serve, shape, trace): (Serve, Shape, Trace),
    ) -> CommandResult<Self> {
        let keys = settings.map_or(Ok(Vec::new()), Settings::keys)?;
        let tls = settings.map_or(Ok(None), Settings::tls)?;
        let file = settings.map_or_else(Default::default, |settings| settings.file.clone());
        let (serve, shape) = (serve.over(file.serve), shape.over(file.drive));
        let shape = NewDrive::from(&shape);
        let mut others = settings.map_or(Vec::new(), Settings::files);
        if let Some(drive) = &serve.drive {
            others.extend([drive.clone(), daemon::keys::file_of(drive)]);
        }
        check_logs(&file.log, &others)?;
        let address = resolve(serve.s3.as_deref().unwrap_or(ADDRESS))?;
        check_domain(serve.s3_domain.as_deref())?;
        let drive = serve.drive.as_deref();
        if keys.is_empty() {
            daemon::keys::check(drive)?;
        }
        let cache = serve.cache.as_ref().map(|size| size.value.0);
        let caches = memory::of(drive.unwrap_or(Path::new("")), cache)
            .map_err(|error| CommandError::new(Exit::Usage, format_args!("--cache: {error}")))?;
        check_drive(drive, serve.create.unwrap_or_default(), &shape)?;
        Ok(Self {
            serve,
            shape,
            log: file.log,
            trace: trace.over(file.trace),
            address,
            caches,
            keys,
            tls,
        })
    }
}

/// Checks the drive: an existing one has the requested shape and a store, unless a store is to be created; a new one
/// is possible.
fn check_drive(drive: Option<&Path>, creates: bool, shape: &NewDrive) -> CommandResult {
    let found = drive.map(|path| (path, std::fs::symlink_metadata(path)));
    match found {
        Some((path, Ok(_))) => {
            drive_file::check_kind(path)?;
            // Observing works even while another process has the drive open.
            let drive = Drive::observe(path)?;
            drive_file::check_shape(&drive, shape)?;
            match Content::of(&drive) {
                // Unclear contents are left to the mount, which can tell more.
                Content::Store | Content::Unknown(_) => Ok(()),
                Content::Empty if creates => try_store(drive.geometry().clone()),
                content => {
                    let shown = path.display();
                    let error = CommandError::from(store::Error::NotFormatted)
                        .context(format_args!("{shown}: {}", content.words()));
                    Err(match content {
                        Content::Empty => error.hint(format_args!(
                            "make a store: zonestore store mkfs {}, or give --create",
                            shell_word(path)
                        )),
                        _ => error.hint("take another drive: this one is not touched"),
                    })
                }
            }
        }
        Some((path, Err(error))) if error.kind() != io::ErrorKind::NotFound => {
            Err(CommandError::file(path, &error))
        }
        Some((path, Err(_))) if !creates => {
            let why = "make it: zonestore drive create, or say create = true in [serve]";
            fail!(NotFound, "{}: there is no such drive", path.display(); "{why}")
        }
        _ => try_store(drive_file::geometry(&ShapeRequest::from(shape))?),
    }
}

/// Tries the store in memory: it has requirements of its own, and no drive is created that cannot hold a store.
fn try_store(geometry: Geometry) -> CommandResult {
    let tried = MemoryDrive::new(geometry)?;
    store_commands::make(Arc::new(tried), false, None).map(|_| ())
}

/// Checks the domain: requests never name a host that cannot exist.
fn check_domain(domain: Option<&str>) -> CommandResult {
    match domain.map(|name| (name, terminal::check_host(name.trim_matches('.')))) {
        Some((name, Err(why))) => {
            fail!(Usage, "--s3-domain {name:?}: {why}"; "write one such as s3.example.com, without a port")
        }
        _ => Ok(()),
    }
}

/// Checks the logs: each is a file that can be opened for appending, and is used for nothing else.
fn check_logs(log: &Log, others: &[PathBuf]) -> CommandResult {
    let inode = |path: &Path| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.dev(), found.ino()))
    };
    for path in [&log.file, &log.access, &log.audit].into_iter().flatten() {
        let found = std::fs::metadata(path);
        let is_other = |other: &PathBuf| {
            path == other || inode(path).is_some_and(|log| inode(other) == Some(log))
        };
        if let Some(other) = others.iter().find(|other| is_other(other)) {
            return fail!(
                Usage, "[log] {}: that is {}, which the server reads", path.display(), other.display();
                "a log is written to a file of its own"
            );
        }
        if found.is_ok_and(|found| !found.is_file()) {
            return fail!(
                Usage, "[log] {}: no regular file", path.display();
                "name a file, or leave it out: the log goes to standard error then"
            );
        }
        LogFile::check(path).map_err(|error| {
            CommandError::host(&format_args!("[log] {error}"), &error)
                .hint("make its folder, and let the user who serves write there")
        })?;
    }
    let named = [
        ("file", &log.file),
        ("access", &log.access),
        ("audit", &log.audit),
    ];
    let named = named.iter().filter_map(|(name, path)| {
        let path = path.as_ref()?;
        let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
        Some((name, path, (folder, path.file_name()), inode(path)))
    });
    let named: Vec<_> = named.collect();
    for (at, (name, path, place, file)) in named.iter().enumerate() {
        let mut before = named[..at].iter();
        if let Some((other, ..)) =
            before.find(|(_, _, other, found)| other == place || found.is_some() && found == file)
        {
            return fail!(
                Usage, "[log] {name} and {other} are one file: {}", path.display();
                "give each a file of its own; without `audit` its lines are in the server's log"
            );
        }
    }
    Ok(())
}

fn resolve(text: &str) -> CommandResult<SocketAddr> {
    let refused = |why: &dyn Display| {
        let message = format_args!("--s3, or s3 in [serve]: {text}: {why}");
        let hint = "write HOST:PORT, such as 127.0.0.1:9000 or [::1]:9000";
        CommandError::new(Exit::Usage, message).hint(hint)
    };
    terminal::check_address(text).map_err(|why| refused(&why))?;
    daemon::resolve(text).map_err(|why| refused(&why))
}

impl From<&Shape> for NewDrive {
    fn from(shape: &Shape) -> Self {
        let size = |size: &Option<Parsed<Size>>| size.as_ref().map(|size| size.value);
        Self {
            profile: shape.profile.clone(),
            size: size(&shape.size),
            zone_size: size(&shape.zone_size),
            zone_capacity: size(&shape.zone_capacity),
            conventional: shape.conventional,
            max_open: shape.max_open,
            max_active: shape.max_active,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_port_is_a_mistake_of_usage() {
        assert_eq!(resolve("127.0.0.1").unwrap_err().exit, Exit::Usage);
    }
}
