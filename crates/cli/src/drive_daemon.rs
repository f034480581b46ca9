//! `zonestore daemon`: serves drives as devices of OpenStack Swift.

use crate::args::DaemonArguments;
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, Exit, fail};
use crate::output::Output;
use crate::serve;
use control::Socket;
use daemon::{DriveServer, ServedDrive, memory};
use device::ZonedDevice;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::Store;

/// Files that are open for each drive, which are five, apart from those for its requests.
const OPEN_FILES_A_DRIVE: u64 = 6;

/// Serves until a signal comes.
pub fn run(arguments: &DaemonArguments, out: &mut Output) -> CommandResult {
    let drives = arguments.drives.len() as u64;
    serve::raise_open_files(serve::LEAST_OPEN_FILES + OPEN_FILES_A_DRIVE * drives)?;
    let named = arguments.drives.iter().map(|drive| named(drive));
    let named: Vec<(String, PathBuf)> = named.collect::<CommandResult<_>>()?;
    let mut names = BTreeSet::new();
    if let Some((twice, _)) = named.iter().find(|(name, _)| !names.insert(name)) {
        return fail!(Usage, "two drives are named {twice}"; "name them: NAME=DRIVE");
    }
    check_once(&named)?;
    let user = arguments.user.as_deref().map(user).transpose()?;
    // Before any mount: without the socket, no client could be served.
    let socket = Socket::at(&arguments.socket, user)?;
    let mut drives = Vec::new();
    let served = named
        .into_iter()
        .try_for_each(|(name, path)| {
            let count = arguments.drives.len() as u64;
            drives.push(mount(name, &path, arguments, count)?);
            Ok(())
        })
        .and_then(|()| serve(socket, &drives, out));
    let stopped = drives.iter().map(|drive| drive.store.unmount());
    let stopped: Vec<store::Result<()>> = stopped.collect();
    served?;
    stopped.into_iter().collect::<store::Result<()>>()?;
    tracing::info!("the stores are unmounted");
    Ok(())
}

fn serve(socket: Socket, drives: &[ServedDrive], out: &mut Output) -> CommandResult {
    let server = DriveServer::new(socket, drives)?;
    server.run(|socket| {
        serve::greet(out, |out| {
            for drive in drives {
                let path = drive.drive.path().display();
                out.line(format_args!("device {}: {path}", drive.name))?;
            }
            let socket = socket.display().to_string();
            out.line(format_args!("ZoneStore listens at {socket}"))?;
            out.line(format_args!("{}", daemon::how_to_stop()))?;
            let names: Vec<&String> = drives.iter().map(|drive| &drive.name).collect();
            out.value(&json!({"socket": socket, "devices": names}))
        });
        Ok(())
    })
}

/// Mounts a drive, which gets a share of the cache memory: `count` drives share it.
fn mount(
    name: String,
    path: &Path,
    arguments: &DaemonArguments,
    count: u64,
) -> CommandResult<ServedDrive> {
    let said = arguments.care.said();
    let cache = said.cache.as_ref().map(|size| size.value.0);
    let (data, blocks) = memory::of(path, cache)
        .map_err(|error| CommandError::new(Exit::Usage, format_args!("--cache: {error}")))?;
    let drive = Arc::new(memory::beside_cache(drive_file::open(path)?, data));
    let caches = (data / count, blocks / count);
    let mounted: CommandResult<Store> =
        serve::mount(path, &said, caches, drive.clone() as Arc<dyn ZonedDevice>);
    let store = mounted.map_err(|error| error.context(path.display()))?;
    if let Err(error) = archive::check_finished(&store) {
        store.unmount()?;
        return Err(CommandError::from(error).context(path.display()));
    }
    Ok(ServedDrive { name, drive, store })
}

/// Refuses a drive that is named twice, by whatever paths.
fn check_once(named: &[(String, PathBuf)]) -> CommandResult {
    let mut found = BTreeMap::new();
    for (name, path) in named {
        // A missing drive is left to the opening to refuse.
        let Ok(drive) = std::fs::metadata(path) else {
            continue;
        };
        let identity = match drive.file_type() {
            kind if kind.is_block_device() || kind.is_char_device() => (true, drive.rdev(), 0),
            _ => (false, drive.dev(), drive.ino()),
        };
        if let Some(other) = found.insert(identity, name) {
            let path = path.display();
            return fail!(
                Usage, "{other} and {name} are one drive, {path}";
                "give each drive once: it is one device of the ring"
            );
        }
    }
    Ok(())
}

/// Name and path of `[NAME=]DRIVE`. If the whole text is the path of an existing file, there is no name.
fn named(argument: &Path) -> CommandResult<(String, PathBuf)> {
    let bytes = argument.as_os_str().as_bytes();
    let split = argument.to_str().and_then(|text| text.split_once('='));
    let (name, path) = match split {
        Some((name, path)) if !argument.exists() => (name.to_owned(), PathBuf::from(path)),
        _ => {
            let name = argument.file_name().unwrap_or_default().to_string_lossy();
            let name = name.strip_suffix(".zoned").unwrap_or(&name).to_owned();
            (name, argument.to_owned())
        }
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if ["", ".", ".."].contains(&name.as_str()) || !name.bytes().all(is_plain) || bytes.is_empty() {
        return fail!(
            Usage, "{name:?} is no name of a device: it has letters, digits, dots, _ and -, and is neither . nor ..";
            "name it: NAME=DRIVE"
        );
    }
    Ok((name, path))
}

/// User id of a user name or number.
fn user(name: &str) -> CommandResult<u32> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let found = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
    });
    found.ok_or_else(|| {
        CommandError::new(Exit::Usage, format_args!("there is no user {name}"))
            .hint("give the user's number if no file on this machine has the name")
    })
}
