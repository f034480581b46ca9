//! Exit codes and hints for the errors of the libraries.

use super::{CommandError, Exit};
use device::profile::ProfileError;
use device::{DriveError, FileDriveError, HostDriveError};
use inspect::LookError;
use skylight::target::host::HostError;
use std::io;
use terminal::shell_word;
use zone::{GeometryError, ZoneError};

/// Implements `From` for errors that wrap one of several other errors.
macro_rules! passed_on {
    ($($error:ident: $($kind:ident)+;)+) => {$(
        impl From<$error> for CommandError {
            fn from(error: $error) -> Self {
                match error {
                    $($error::$kind(error) => error.into(),)+
                }
            }
        }
    )+};
}

passed_on! {
    DriveError: File Host;
    LookError: Drive Zone BlueFs;
}

/// The hint for a drive that cannot be mounted but may still have data.
pub const KEEP: &str = "nothing was changed; keep the drive as it is: `zonestore store salvage DRIVE` looks for objects, `drive report` \
     shows its zones";
/// The hint for a drive of which nobody can tell whether it ever had a store.
pub const UNFINISHED: &str = "nothing was changed; keep the drive as it is if it ever held objects: `zonestore store salvage DRIVE` looks for \
     them; if it never did, because the command that made its store was cut short, `zonestore store mkfs DRIVE --force` makes \
     it anew";
const SHAPE_HINT: &str = "`zonestore help drive create` explains the options";
const LARGER_DRIVE: &str = "make the drive larger, or its zones smaller (--zone-size)";
const NO_HOST: &str = "free space on the host's disk first (`df -h` shows it); removing objects needs some of it, too";
const HOST_OR_OBJECTS: &str = "free space on the host's disk (`df -h` shows it), or remove objects";
pub const FREE_HOST: &str = "free space on the host's disk; `df -h` shows it";
/// The hints of errors that say that the host's disk is full, or takes no more for another reason.
pub(super) const OF_FULL_HOST: [&str; 4] = [NO_HOST, HOST_OR_OBJECTS, FREE_HOST, FILE_LIMIT];
/// The hint for a write beyond the largest size that a file may have.
pub const FILE_LIMIT: &str = "raise the limit on the size of files: `ulimit -f` shows it, and LimitFSIZE= sets it for a service";

/// The hint for a process that may open no more files.
pub const OPEN_FILES: &str =
    "raise the limit on open files: `ulimit -n` shows it, and LimitNOFILE= sets it for a service";

/// The hint where no thread can be started.
pub const THREADS: &str = "end other programs, or raise the limit on processes and threads: `ulimit -u` shows it, and TasksMax= sets it for a \
     service";

/// The error for the file beside a drive that keeps what is not on it yet, or notes of another time.
fn of_unsynced(error: &FileDriveError, source: &io::Error) -> CommandError {
    let made = CommandError::host(error, source);
    let exit = Exit::Failed;
    let hint = match error {
        FileDriveError::OtherNotes { .. } => "none of them counts: let the file be removed",
        _ => {
            "keep the file, which has acknowledged writes, and try again once it can be read and written"
        }
    };
    match made.hint {
        Some(_) => CommandError { exit, ..made },
        None => CommandError { exit, ..made }.hint(hint),
    }
}

impl From<FileDriveError> for CommandError {
    fn from(error: FileDriveError) -> Self {
        use FileDriveError as E;
        let error = match error {
            E::Geometry(error) => return error.into(),
            E::Io { ref source, .. } => return Self::host(&error, source),
            E::Unsynced { ref source, .. } | E::OtherNotes { ref source, .. } => {
                return of_unsynced(&error, source);
            }
            error => error,
        };
        let at = |path: &std::path::Path| shell_word(path);
        sorted! { error:
            E::Missing { .. } => NotFound, "make one: zonestore drive create PATH --size 64GiB";
            E::Exists { .. } => Refused, "nothing was written to it; choose another path";
            E::NotADrive { .. } => Damaged,
                "nothing was written to it; drives are made by `zonestore drive create`";
            E::Damaged { .. } => Damaged,
                "nothing was written to it; keep the file and restore it from a copy";
            E::Length { path, expected, found } if found > expected => Damaged, format!(
                "something was appended to it; in a copy, `truncate -s {expected} {}` takes that away", at(path)
            );
            E::Length { .. } => Damaged,
                "it was cut short, perhaps while it was copied: restore it from a copy";
            E::UnsupportedVersion { .. } => Failed, "use the program version that made it";
            E::InUse { path } => Busy, format!("stop the other program; `fuser {}` names it", at(path));
            E::HostFull { .. } => NoSpace, FREE_HOST;
            E::TooLargeForHost { .. } | E::NameTooLong { .. } | E::TooManyZones { .. } => Usage;
            E::Io { .. } | E::Unsynced { .. } | E::OtherNotes { .. } | E::Geometry(_) => Failed;
        }
    }
}

impl From<GeometryError> for CommandError {
    fn from(error: GeometryError) -> Self {
        use GeometryError as E;
        let made = |option| Self::new(Exit::Usage, &error).context(option);
        match error {
            E::ZoneSize { .. } => made("--zone-size, --zone-capacity"),
            E::ZoneCount { .. } => made("--size, --zone-size, --conventional"),
            E::Limits { open, active } => Self::new(
                Exit::Usage,
                format_args!("--max-open {open} is more than --max-active {active}"),
            ),
            _ => Self::new(Exit::Usage, &error),
        }
        .hint(SHAPE_HINT)
    }
}

impl From<HostDriveError> for CommandError {
    fn from(error: HostDriveError) -> Self {
        use HostDriveError as E;
        if let E::Io { source, .. } = &error {
            return Self::host(&error, source);
        }
        sorted! { error:
            E::Missing { .. } => NotFound, "`lsblk -z` lists the zoned drives";
            E::NotZoned { .. } | E::Shape { .. } | E::Geometry { .. } => Refused,
                "nothing was written to it; `lsblk -z` lists the zoned drives";
            E::InUse { path } => Busy,
                format!("stop the other program; `fuser {}` names it", shell_word(path));
            E::Permission { .. } if rustix::process::geteuid().is_root() => Failed,
                "root may not either: this container, unit or jail was not given the device";
            E::Permission { .. } => Failed, "run as a user who may write to the device, such as root";
            E::Io { .. } => Failed;
        }
    }
}

impl From<HostError> for CommandError {
    fn from(error: HostError) -> Self {
        use HostError as E;
        if let E::Io { source, .. } = &error {
            return Self::host(&error, source);
        }
        sorted! { error:
            E::InUse { .. } => Busy, "unmount it, or stop what uses it; --read-only only reads";
            E::Replaced { .. } => Failed, "nothing was written; look at what is there now, and try again";
            E::ReadOnly { .. } => Failed, "--read-only says what can be told without writing";
            // No data is in danger: the file is only unsuitable.
            E::Hole { .. } => Usage,
                "cp --sparse=never FILE COPY makes a copy without holes, which can be looked into";
            E::NoDirect { .. } | E::FileSystem { .. } => Usage,
                "name a block device, or a file on ext4 or xfs";
            E::Kind { .. } | E::Small { .. } => Usage, "name a whole block device; `lsblk` lists them";
            E::Io { .. } => Failed;
        }
    }
}

impl From<ProfileError> for CommandError {
    fn from(error: ProfileError) -> Self {
        let (option, hint) = match error {
            ProfileError::Unknown { .. } => {
                ("--profile", "`zonestore drive profiles` describes them")
            }
            ProfileError::ZoneSize { .. } => ("--zone-size", SHAPE_HINT),
            ProfileError::TooSmall { .. } | ProfileError::TooLarge { .. } => ("--size", SHAPE_HINT),
        };
        Self::new(Exit::Usage, error).context(option).hint(hint)
    }
}

impl From<ZoneError> for CommandError {
    fn from(error: ZoneError) -> Self {
        let made = sorted! { error:
            ZoneError::OutOfRange { .. } => NotFound;
            ZoneError::Offline { .. } => Damaged;
            // The drive itself has detected that its bytes are not as written.
            ZoneError::Io { source, .. } if source.kind() == io::ErrorKind::InvalidData => Damaged;
            ZoneError::Io { source, .. } if source.kind() == io::ErrorKind::FileTooLarge => NoSpace, FILE_LIMIT;
            error if error.is_host_full() => NoSpace, NO_HOST;
            _ => Failed;
        };
        Self {
            message: format!("drive: {}", super::strip_os_error(&made.message)),
            ..made
        }
    }
}

/// The hint for damaged objects. A command that only reads does not record damage.
const WRITE_DOWN: &str = "restore the object from a copy; `zonestore store scrub DRIVE --deep` finds the others, and writes all \
     down for `store health`";

/// The hint for a backup that held zones which the store needed.
pub(super) const GIVEN_UP: &str = "back up while less is written, or remove objects first; an incremental backup (--since) takes less time";

impl From<store::Error> for CommandError {
    fn from(error: store::Error) -> Self {
        use store::Error as E;
        let error = match error {
            E::Drive(error @ ZoneError::Offline { .. }) => {
                return CommandError::from(error).hint(WRITE_DOWN);
            }
            E::Drive(error) => return error.into(),
            E::BlueFs(error) => return of_a_store(error),
            E::Kv(error) => return error.into(),
            error => error,
        };
        sorted! { error:
            E::NoCollection { .. } | E::NoObject { .. } => NotFound,
                "`zonestore store ls DRIVE` shows what there is";
            E::HashNotCovered { .. } | E::HashesTaken { .. } | E::NoName { .. } => Usage;
            E::CannotSplit { .. } | E::CannotMerge { .. } => Usage;
            E::CollectionExists { .. } | E::ConditionFailed { .. } | E::ReadOnly => Failed;
            E::CollectionNotEmpty { .. } => Refused, "rm -r removes a collection with all it holds";
            E::Invalid { .. } => Usage;
            E::DataOfOther { .. } => Failed;
            E::TransactionTooLarge { .. } => NoSpace;
            E::NoSpace { .. } | E::NoMetadataSpace { .. } => NoSpace,
                "remove objects: `zonestore store rm`; `store df` shows the space";
            E::HostFull { .. } if !error.leaves_deletes() => NoSpace, NO_HOST;
            E::HostFull { .. } => NoSpace, HOST_OR_OBJECTS;
            E::ChecksumMismatch { .. } | E::Unreadable { .. } | E::BytesLost { .. } => Damaged,
                WRITE_DOWN;
            E::CorruptMetadata { .. } | E::BelowMetadata { .. } => Damaged,
                "keep a copy of the drive; `zonestore store fsck DRIVE` says what is damaged";
            E::MomentGivenUp => Busy, GIVEN_UP;
            E::NotFormatted => NotFormatted, "make a store: zonestore store mkfs DRIVE";
            E::NoStore { .. } => NotFormatted, "nothing was changed; take another drive";
            E::Incomplete => Damaged, UNFINISHED;
            E::StillOpens => Refused, "nothing was changed; `zonestore store fsck DRIVE --repair` loses less";
            E::SalvageUnfinished => Damaged, "`zonestore store salvage DRIVE --in-place` goes on with it";
            E::NoRoomForMetadata { .. } => NoSpace,
                "nothing was changed; --drop-unplaced gives up what nothing describes, and --to OTHER needs no room here";
            E::NothingToSalvage => NotFormatted, "nothing was changed; keep the drive as it is if it held a store";
            E::UnsupportedVersion { .. } => Failed, "use the program version that made the store";
            E::DriveTooSmall { .. } => Usage, LARGER_DRIVE;
            E::Failed { .. } => Failed,
                "what is stored can be read; look after the drive, or free space on the host's disk if that was full (`df -h`), then \
                 start the command again";
            E::NotClosed { .. } => Failed, "what was made durable is there when the drive is mounted again";
            E::WrittenLost { .. } => Failed,
                "store it again; `zonestore store health DRIVE` says what else is lost";
            E::Drive(_) | E::Kv(_) | E::BlueFs(_) => Failed;
        }
    }
}

/// Adapts BlueFS errors to commands of a store: not all of them have `--accept-damage`, and they have other remedies.
fn of_a_store(error: bluefs::Error) -> CommandError {
    use bluefs::Error as E;
    let is_damage = matches!(
        error,
        E::Corrupt { .. }
            | E::SuperblocksDamaged { .. }
            | E::JournalDamaged { .. }
            | E::LogDamaged { .. }
            | E::ZoneLost { .. }
    );
    let made = CommandError::from(error);
    match is_damage {
        true => made.hint(
            "keep a copy of the drive; `zonestore fs fsck DRIVE` says what is missing, `store ls|df|get \
             --accept-damage` read without it, `fs fsck DRIVE --repair` gives it up, and `store salvage DRIVE` says what \
             the data zones tell without the metadata",
        ),
        false => made,
    }
}

impl From<bluefs::Error> for CommandError {
    fn from(error: bluefs::Error) -> Self {
        use bluefs::Error as E;
        let error = match error {
            E::Drive(error) => return error.into(),
            E::Unsynced(error) => {
                return match &*error {
                    FileDriveError::Unsynced { source, .. }
                    | FileDriveError::OtherNotes { source, .. } => of_unsynced(&error, source),
                    other => Self::new(Exit::Failed, other),
                };
            }
            error => error,
        };
        sorted! { error:
            E::NotFound { .. } => NotFound, "`zonestore fs ls DRIVE` shows what there is";
            E::NoSpace { .. } => NoSpace, "delete files, or take a larger drive";
            E::Locked { .. } => Busy, "stop the other program";
            E::NotFormatted => NotFormatted, "make a file system: zonestore fs mkfs DRIVE";
            E::SuperblockLost { .. } => Damaged, KEEP;
            E::NotEmpty { .. } | E::OtherRole { .. } => Refused,
                "take another drive; `mkfs --help` tells how one is erased that nobody needs";
            E::UnsupportedVersion { .. } => Failed, "use the program version that made the file system";
            E::OtherDamage => Refused, "the same command names what is damaged now";
            E::Unsuitable { .. } => Usage, "take another drive; nothing was changed on this one";
            E::DriveTooSmall { .. } => Usage, LARGER_DRIVE;
            E::UnknownOperation { .. } => Damaged,
                "use the version of the program that wrote it, and keep a copy of the drive";
            E::Corrupt { .. } | E::SuperblocksDamaged { .. } | E::JournalDamaged { .. } | E::LogDamaged { .. }
                => Damaged, "keep a copy of the drive; `zonestore fs fsck DRIVE --deep` says what is missing or damaged; commands \
                    that read go on without missing metadata with --accept-damage, and `fs backup` once damaged files are removed";
            E::GeometryChanged { .. } => Damaged, "keep a copy of the drive";
            E::ZoneLost { .. } => Damaged,
                "zonestore fs fsck DRIVE names all files with bytes in zones that are offline";
            E::Exists { .. } | E::IsDirectory { .. } | E::NotDirectory { .. } | E::DirectoryNotEmpty { .. }
                | E::BadPath { .. } | E::Invalid { .. } => Usage;
            E::ZoneStage { .. } => Failed,
                "nothing was changed by it; `zonestore fs fsck DRIVE` checks the drive";
            E::Stopped { .. } => Failed,
                "what was synced is there: mount the drive again once its cause is gone";
            E::ReadOnly | E::Unmounted | E::Unsynced(_) | E::Drive(_) => Failed;
        }
    }
}

impl From<kv::Error> for CommandError {
    fn from(error: kv::Error) -> Self {
        use kv::Error as E;
        sorted! { error:
            // RocksDB does not tell which disk is full.
            E::NoSpace { .. } => NoSpace, "where the disk under a drive file is full (`df -h` shows it), free space there first; otherwise \
                remove objects; `store df` shows the space";
            E::Corruption { .. } | E::NotFound { .. } => Damaged,
                "keep a copy of the drive; `zonestore fs fsck --deep DRIVE` says what is damaged, and \
                    `zonestore store salvage DRIVE` what a store's data zones tell without the database";
            E::Busy { .. } => Busy, "try again";
            E::Io { .. } | E::Stopped { .. } => Failed, "keep a copy of the drive; `zonestore fs fsck DRIVE` says what of the metadata cannot be \
                read, and `zonestore store salvage DRIVE` what a store's data zones tell without it";
            E::Invalid { .. } | E::OtherEngine { .. } => Failed;
        }
    }
}

impl From<s3::ServeError> for CommandError {
    fn from(error: s3::ServeError) -> Self {
        match &error {
            s3::ServeError::AddressInUse { .. } => Self::new(Exit::Busy, &error)
                .hint("--s3 HOST:PORT names another; so does `make run PORT=9100`"),
            s3::ServeError::Bind { source, .. } => Self::host(&error, source),
        }
    }
}
