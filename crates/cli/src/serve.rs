//! `zonestore serve`: a drive becomes an S3 endpoint.
//!
//! Order: port, drive, store, keys, control socket; then the line with the address. A signal lets requests in
//! hand finish, then the store is unmounted.

use crate::args::ServeArguments;
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, Exit, FREE_HOST, fail, sorted};
use crate::output::Output;
use crate::store_commands;
use daemon::Daemon;
use daemon::keys::{self, Keys, KeysError, Source};
use daemon::memory;
use device::Drive;
use kv_rocksdb::RocksDb;
use s3::{Config, Credentials, Listener, Server};
use serde_json::json;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use store::{MountOptions, Store};

/// Serves until a signal comes.
pub fn run(arguments: &ServeArguments, out: &mut Output) -> CommandResult {
    let address = resolve(&arguments.s3)?;
    let cache = arguments.cache.map(|size| size.0);
    let caches = memory::of(&arguments.drive, cache)
        .map_err(|error| CommandError::new(Exit::Usage, format_args!("--cache: {error}")))?;
    // Before anything is made: without it there is nothing to serve.
    let listener = Listener::bind(address)?;
    let drive = open_drive(arguments)?;
    let store = mount(arguments, caches, drive.clone())?;
    // Only now: a drive that is refused gets no keys.
    let keys = keys::load_or_make(&arguments.drive).map_err(CommandError::from);
    let served = keys.and_then(|keys| {
        let credentials = Credentials::new(&keys.access_key, &keys.secret_key);
        let config = Config {
            domain: arguments.s3_domain.clone(),
            ..Config::new(address, credentials)
        };
        let daemon = Daemon {
            drive,
            store: store.clone(),
            server: Server::new(listener, config, store.clone()),
            stops_on_failure: arguments.exit_on_failure,
        };
        daemon::serve(daemon, |address| {
            announce(&arguments.drive, address, &keys, out)
        })
    });
    let failure = store.failure().filter(|_| arguments.exit_on_failure);
    let stopped = store.unmount();
    served?;
    if let Some(reason) = failure {
        let path = arguments.drive.display();
        return fail!(
            WritesStopped, "{path}: nothing could be written any more: {reason}";
            "look after the drive, then start the server again"
        );
    }
    stopped?;
    tracing::info!("the store is unmounted");
    Ok(())
}

fn resolve(text: &str) -> CommandResult<SocketAddr> {
    daemon::resolve(text).map_err(|why| {
        CommandError::new(Exit::Usage, format_args!("{text}: {why}"))
            .hint("write HOST:PORT, such as 127.0.0.1:9000 or [::1]:9000")
    })
}

fn open_drive(arguments: &ServeArguments) -> CommandResult<Arc<Drive>> {
    let path = &arguments.drive;
    if arguments.create && std::fs::symlink_metadata(path).is_err() {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|e| CommandError::file(folder, &e))?;
        }
        return Ok(Arc::new(drive_file::create(path, &arguments.shape)?.into()));
    }
    let drive = drive_file::open(path)?;
    drive_file::check_shape(&drive, &arguments.shape)?;
    Ok(Arc::new(drive))
}

fn mount(
    arguments: &ServeArguments,
    (data_cache_bytes, block_cache_bytes): (u64, u64),
    drive: Arc<Drive>,
) -> CommandResult<Store> {
    let mut options = MountOptions {
        pace: arguments.clean_pace,
        hours: arguments.clean_hours,
        free_zones: arguments.clean_free_zones,
        data_cache_bytes,
        block_cache_bytes,
        ..MountOptions::new(RocksDb)
    };
    options.data.compression = arguments.compression;
    match Store::mount(drive.clone(), options.clone()) {
        Err(store::Error::NotFormatted) if arguments.create => {
            store_commands::make(drive.clone(), false, 1)?;
            Ok(Store::mount(drive, options)?)
        }
        Err(error @ store::Error::NotFormatted) => {
            let path = arguments.drive.display();
            let hint = format_args!("make a store: zonestore store mkfs {path}, or give --create");
            Err(CommandError::from(error).hint(hint))
        }
        mounted => Ok(mounted?),
    }
}

/// Says where the endpoint is, where the keys are, and what to try.
fn announce(drive: &Path, address: SocketAddr, keys: &Keys, out: &mut Output) -> CommandResult {
    let client = keys.client(address)?;
    out.line(format_args!(
        "ZoneStore serves {} at http://{address}",
        drive.display()
    ))?;
    // Secrets stay out of logs: only somebody who looks at a terminal sees them.
    for line in keys.in_words(&client, std::io::stdout().is_terminal()) {
        out.line(format_args!("{line}"))?;
    }
    out.line(format_args!("Ctrl-C stops."))?;
    let file = match &keys.source {
        Source::File { path, .. } => Some(path.display().to_string()),
        Source::Environment => None,
    };
    out.value(&json!({
        "endpoint": format!("http://{address}"), "drive": drive.display().to_string(), "keys_file": file,
        "access_key": keys.access_key,
    }))?;
    out.flush()
}

impl From<KeysError> for CommandError {
    fn from(error: KeysError) -> Self {
        use KeysError as E;
        const NEW: &str =
            "name another file, or move this one away: new keys are made at the next start";
        if let E::File { path, source } = &error {
            let (access, secret) = (keys::ACCESS_KEY_VARIABLE, keys::SECRET_KEY_VARIABLE);
            let no_file = format!("set {access} and {secret}");
            let hint = match source.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => format!(
                    "let the user who serves read and write it, or {no_file}, which need no file"
                ),
                io::ErrorKind::StorageFull => FREE_HOST.to_owned(),
                io::ErrorKind::InvalidData => NEW.to_owned(),
                _ => format!("{no_file} to do without the file"),
            };
            return Self::file(path, source).hint(hint);
        }
        sorted! { error:
            E::OneVariable { .. } => Usage,
                "set both, or neither to use the key file beside the drive";
            E::NoKeys { .. } => Damaged, NEW;
            E::DeadLink { .. } => NotFound,
                "make what it points to, or move the link away: new keys are made then";
            E::Readable { path, .. } => Refused, format!("chmod 600 {}", path.display());
            E::Random(_) | E::File { .. } => Failed;
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
