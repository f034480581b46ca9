//! `zonestore store …`: the object store on a drive, without a server.

mod archived;
mod backup;
mod collections;
mod dump;
mod fsck;
mod health;
mod names;
mod objects;
mod restore;
mod salvage;
mod scrub;
mod space;
mod top;

use crate::args::{StoreCommand, Tolerance};
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, Exit};
use crate::occupant;
use crate::output::Output;
use control::{Opened, StoreView};
use device::{Drive, ZonedDevice};
use kv_rocksdb::RocksDb;
use runtime::Runtime;
use std::path::Path;
use std::sync::Arc;
use store::{Made, MkfsOptions, MountOptions, Store};
use terminal::shell_word;

/// Runs `zonestore store …`.
pub fn run(command: StoreCommand, out: &mut Output) -> CommandResult {
    match command {
        StoreCommand::Mkfs(new) => space::mkfs(&new, out),
        StoreCommand::Df(which) => space::df(&which.drive, which.damage, out),
        StoreCommand::Health(which) => health::health(&which.drive, out),
        StoreCommand::Top(arguments) => top::top(&arguments, out),
        StoreCommand::Ls(arguments) => objects::list(&arguments, out),
        StoreCommand::Put(arguments) => objects::put(&arguments, out),
        StoreCommand::Get(arguments) => objects::get(&arguments, out),
        StoreCommand::Rm(arguments) => objects::remove(&arguments, out),
        StoreCommand::Collection(command) => collections::run(&command, out),
        StoreCommand::Fsck(fsck) => fsck::fsck(&fsck, out),
        StoreCommand::Scrub(arguments) => scrub::scrub(&arguments, out),
        StoreCommand::Salvage(arguments) => salvage::salvage(&arguments, out),
        StoreCommand::Dump(arguments) => dump::dump(&arguments, out),
        StoreCommand::Export(arguments) => backup::export(&arguments, out),
        StoreCommand::Import(arguments) => restore::import(&arguments, out),
        StoreCommand::Backup(arguments) => backup::backup(&arguments, out),
        StoreCommand::Restore(arguments) => restore::restore(&arguments, out),
        StoreCommand::Clean(arguments) => space::clean(&arguments, out),
    }
}

/// Creates a store with a new identity.
pub fn make(
    drive: Arc<dyn ZonedDevice>,
    force: bool,
    metadata_copies: Option<u32>,
) -> CommandResult<([u8; 16], Made)> {
    let uuid = Runtime::system().bytes()?;
    let options = MkfsOptions {
        uuid,
        metadata_copies,
        force,
        ..MkfsOptions::new(RocksDb)
    };
    if !force {
        occupant::refuse_content(&*drive)?;
    }
    let made = Store::mkfs(drive, &options)?;
    Ok((uuid, made))
}

/// Whether the host's disk was full, and not the drive, for a command that wrote to `store`.
fn is_of_full_host(error: &CommandError, store: &Store) -> bool {
    let space = store.statfs();
    // RocksDB does not tell which disk was full.
    let is_short = |free| free < space.host_kept_bytes;
    error.is_of_full_host()
        || error.exit == Exit::NoSpace && space.host_free_bytes.is_some_and(is_short)
}

/// The hint for a full disk of the host, for commands that go on where they were.
const GOES_ON: &str = "free space on the host's disk (`df -h` shows it), or raise the limit on the size of files \
     (`ulimit -f`); the same command then goes on";

/// How a command accesses the store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    /// Reads the part of the store before the damage too; the output has to say so.
    ReadDamaged,
    Write,
}

impl From<Tolerance> for Access {
    fn from(damage: Tolerance) -> Self {
        if damage.accept_damage {
            Self::ReadDamaged
        } else {
            Self::Read
        }
    }
}

/// Mounts the store on a drive or connects to its server, and runs `work`.
fn with_view<T>(
    path: &Path,
    access: Access,
    work: impl FnOnce(&StoreView) -> CommandResult<T>,
) -> CommandResult<T> {
    match drive_file::open_or_ask(path, access == Access::Write)? {
        Opened::Drive(drive) => {
            mounted(drive, access, |store| work(&StoreView::Here(store.clone())))
        }
        Opened::Served(client) => work(&StoreView::Served(client)),
    }
}

/// Mounts the store on a drive that is not being served, and runs `work`.
fn with_store<T>(
    path: &Path,
    access: Access,
    work: impl FnOnce(&Store) -> CommandResult<T>,
) -> CommandResult<T> {
    let drive = match access {
        Access::Write => drive_file::open(path)?,
        Access::Read | Access::ReadDamaged => drive_file::open_read_only(path)?,
    };
    mounted(drive, access, work)
}

/// Mounts a store to change its objects, unless an earlier restore into it is incomplete.
fn with_objects<T>(path: &Path, work: impl FnOnce(&Store) -> CommandResult<T>) -> CommandResult<T> {
    with_store(path, Access::Write, |store| {
        archive::check_finished(store)
            .map_err(|error| CommandError::from(error).context(path.display()))?;
        work(store)
    })
}

/// Mounts the store, runs `work`, and unmounts the store even if `work` failed.
fn mounted<T>(
    drive: Drive,
    access: Access,
    work: impl FnOnce(&Store) -> CommandResult<T>,
) -> CommandResult<T> {
    let path = drive.path().to_owned();
    // A command may have two drives, so its error says which.
    let store = Store::mount(Arc::new(drive), options(access)).map_err(|error| {
        let is_missing = matches!(error, store::Error::NotFormatted);
        let made = CommandError::from(error).context(path.display());
        match is_missing {
            true => made.hint(make_one(&path)),
            false => made,
        }
    })?;
    store.used_for(work)
}

/// The hint for a drive without a store.
pub fn make_one(drive: &Path) -> String {
    format!("make a store: zonestore store mkfs {}", shell_word(drive))
}

/// Mount options for a single command, which decides itself when to clean.
fn options(access: Access) -> MountOptions {
    MountOptions {
        read_only: access != Access::Write,
        accept_damage: access == Access::ReadDamaged,
        background: false,
        ..MountOptions::new(RocksDb)
    }
}
