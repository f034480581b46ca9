//! `zonestore smrfs …`: POSIX file systems on drives.

mod clean;
mod inherited;
mod look;
mod mkfs;
mod mount;
mod opening;
mod unmount;

pub use opening::{drive_at, mounted_at};

use crate::args::SmrfsCommand;
use crate::errors::{CommandError, CommandResult, FREE_HOST, fail, sorted};
use crate::output::Output;
use ::smrfs::{Error, FileSystem};

/// Runs `zonestore smrfs …`.
pub fn run(command: SmrfsCommand, out: &mut Output) -> CommandResult {
    match command {
        SmrfsCommand::Mkfs(arguments) => mkfs::mkfs(&arguments, out),
        SmrfsCommand::Mount(arguments) if arguments.foreground => mount::mount(&arguments, out),
        SmrfsCommand::Mount(arguments) => mount::mount_in_background(&arguments, out),
        SmrfsCommand::Unmount { directory } => unmount::unmount(&directory, out),
        SmrfsCommand::Top {
            directory,
            interval,
            once,
        } => look::top(directory, interval, once, out),
        SmrfsCommand::Fsck { drive, deep } => look::fsck(&drive, deep, out),
        SmrfsCommand::Df { drive } => look::df(&drive, out),
        SmrfsCommand::Dump(which) => look::dump(&which.drive, out),
        SmrfsCommand::Clean {
            drive,
            bands,
            policy,
        } => clean::clean(&drive, bands, policy, out),
    }
}

/// Refuses options that the kind of file system does not have.
fn suits(fs: &FileSystem, has_policy: bool, has_fit: bool) -> CommandResult {
    match fs.shape().is_caveat {
        true if has_policy => fail!(
            Usage, "--policy chooses bands, and a Caveat-Scriptor drive has none";
            "leave it out; --fit chooses free extents"
        ),
        false if has_fit => fail!(
            Usage, "--fit chooses free extents of a Caveat-Scriptor drive, and this file system has bands";
            "leave it out; --policy chooses which band is cleaned next"
        ),
        _ => Ok(()),
    }
}

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        use Error as E;
        let error = match error {
            E::Drive(error) => return error.into(),
            error => error,
        };
        sorted! { error:
            E::NotFormatted => NotFormatted, "make a file system: zonestore smrfs mkfs DRIVE";
            E::NoSpace | E::NoMetadataSpace => NoSpace, "mount it and remove files";
            E::HostFull => NoSpace, FREE_HOST;
            E::DamagedMetadata { .. } | E::DamagedData { .. } => Damaged,
                "nothing was changed; keep a copy of the drive, and restore from a backup";
            E::Unwritable(_) => Damaged, "mount it with --read-only, and copy the files to another drive";
            E::Version { .. } => Failed, "use the program version that made the file system";
            E::Options(_) => Usage, "`zonestore help smrfs mkfs` says what there is";
            E::Shape(_) => Usage, "take another drive; `zonestore help smrfs mkfs` says which";
            _ => Failed;
        }
    }
}
