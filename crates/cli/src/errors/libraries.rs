//! The libraries' errors, sorted into exit codes, each with what to do about it.

use super::{CommandError, Exit, exit_of_io};
use device::profile::ProfileError;
use device::{DriveError, FileDriveError, HostDriveError};
use skylight::target::host::HostError;
use zone::{GeometryError, ZoneError};

impl From<FileDriveError> for CommandError {
    fn from(error: FileDriveError) -> Self {
        use FileDriveError as E;
        let (exit, hint) = match &error {
            E::Missing { .. } => (
                Exit::NotFound,
                "make one: zonestore drive create PATH --size 64GiB".to_owned(),
            ),
            E::Exists { .. } => (
                Exit::Refused,
                "nothing was written to it; choose another path".to_owned(),
            ),
            E::NotADrive { .. } => (
                Exit::Damaged,
                "nothing was written to it; drives are made by `zonestore drive create`".to_owned(),
            ),
            E::Damaged { .. } => (
                Exit::Damaged,
                "nothing was written to it; keep the file and restore it from a copy".to_owned(),
            ),
            E::Length {
                path,
                expected,
                found,
            } => (
                Exit::Damaged,
                if found > expected {
                    format!(
                        "something was appended to it; in a copy, `truncate -s {expected} {}` takes that away",
                        path.display()
                    )
                } else {
                    "it was cut short, perhaps while it was copied: restore it from a copy"
                        .to_owned()
                },
            ),
            E::UnsupportedVersion { .. } => (
                Exit::Failed,
                "use the program version that made it".to_owned(),
            ),
            E::InUse { path } => (
                Exit::Busy,
                format!(
                    "stop the other program; `fuser {}` names it",
                    path.display()
                ),
            ),
            E::HostFull { .. } => (
                Exit::NoSpace,
                "free space on the host's disk; `df -h` shows it".to_owned(),
            ),
            E::Io { source, .. } => {
                return Self::new(
                    exit_of_io(source),
                    super::strip_os_error(&error.to_string()),
                );
            }
            E::TooLargeForHost { .. } | E::NameTooLong { .. } | E::TooManyZones { .. } => {
                return Self::new(Exit::Usage, error);
            }
            E::Geometry(error) => return error.clone().into(),
        };
        Self::new(exit, error).hint(hint)
    }
}

/// Where data may still be on a drive that cannot be mounted.
const KEEP: &str =
    "nothing was changed; keep the drive as it is: `zonestore drive report DRIVE` shows its zones";

const SHAPE_HINT: &str = "`zonestore help drive create` explains the options";

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
            // These have no options.
            E::BlockSize(_) | E::SequentialKind | E::Append(_) => Self::new(Exit::Usage, &error),
        }
        .hint(SHAPE_HINT)
    }
}

impl From<DriveError> for CommandError {
    fn from(error: DriveError) -> Self {
        match error {
            DriveError::File(error) => error.into(),
            DriveError::Host(error) => error.into(),
        }
    }
}

impl From<HostDriveError> for CommandError {
    fn from(error: HostDriveError) -> Self {
        use HostDriveError as E;
        let (exit, hint) = match &error {
            E::Missing { .. } => (
                Exit::NotFound,
                "`lsblk -z` lists the zoned drives".to_owned(),
            ),
            E::NotZoned { .. } | E::Shape { .. } | E::Geometry { .. } => (
                Exit::Refused,
                "nothing was written to it; `lsblk -z` lists the zoned drives".to_owned(),
            ),
            E::InUse { path } => (
                Exit::Busy,
                format!(
                    "stop the other program; `fuser {}` names it",
                    path.display()
                ),
            ),
            E::Permission { .. } => (
                Exit::Failed,
                "run as a user who may write to the device, such as root".to_owned(),
            ),
            E::Io { source, .. } => {
                return Self::new(
                    exit_of_io(source),
                    super::strip_os_error(&error.to_string()),
                );
            }
        };
        Self::new(exit, error).hint(hint)
    }
}

impl From<HostError> for CommandError {
    fn from(error: HostError) -> Self {
        use HostError as E;
        let (exit, hint) = match &error {
            E::InUse { .. } => (
                Exit::Busy,
                "unmount it, or stop what uses it; --read-only only reads",
            ),
            E::ReadOnly { .. } => (
                Exit::Failed,
                "--read-only says what can be told without writing",
            ),
            // Nothing is in danger: it is only nothing that can be looked into.
            E::Hole { .. } => (
                Exit::Usage,
                "cp --sparse=never FILE COPY makes a copy without holes, which can be looked into",
            ),
            E::NoDirect { .. } | E::FileSystem { .. } => {
                (Exit::Usage, "name a block device, or a file on ext4 or xfs")
            }
            E::Kind { .. } | E::Small { .. } => {
                (Exit::Usage, "name a whole block device; `lsblk` lists them")
            }
            E::Io { source, .. } => {
                return Self::new(
                    exit_of_io(source),
                    super::strip_os_error(&error.to_string()),
                );
            }
        };
        Self::new(exit, error).hint(hint)
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
        let exit = match &error {
            ZoneError::OutOfRange { .. } => Exit::NotFound,
            ZoneError::Offline { .. } => Exit::Damaged,
            _ if error.is_host_full() => Exit::NoSpace,
            _ => Exit::Failed,
        };
        let made = Self::new(
            exit,
            format_args!("drive: {}", super::strip_os_error(&error.to_string())),
        );
        if error.is_host_full() {
            return made.hint("free space on the host's disk; `df -h` shows it");
        }
        made
    }
}

impl From<store::Error> for CommandError {
    fn from(error: store::Error) -> Self {
        use store::Error as E;
        let (exit, hint) = match &error {
            E::NoCollection { .. } | E::NoObject { .. } => (
                Exit::NotFound,
                "`zonestore store ls DRIVE` shows what there is",
            ),
            E::CollectionExists { .. } | E::ConditionFailed { .. } => {
                return Self::new(Exit::Failed, error);
            }
            E::CollectionNotEmpty { .. } => (
                Exit::Refused,
                "rm -r removes a collection with all it holds",
            ),
            E::Invalid { .. } => return Self::new(Exit::Usage, error),
            E::NoSpace { .. } | E::NoMetadataSpace { .. } => (
                Exit::NoSpace,
                "remove objects: `zonestore store rm`; `store df` shows the space",
            ),
            E::HostFull { .. } => (
                Exit::NoSpace,
                "free space on the host's disk (`df -h` shows it), or remove objects",
            ),
            E::ChecksumMismatch { .. } => (
                Exit::Damaged,
                "restore the object from a copy; `store fsck --deep` finds the others",
            ),
            E::CorruptMetadata { .. } | E::BelowMetadata { .. } => (
                Exit::Damaged,
                "keep a copy of the drive; `zonestore store fsck DRIVE` says what is damaged",
            ),
            E::NotFormatted => (
                Exit::NotFormatted,
                "make a store: zonestore store mkfs DRIVE",
            ),
            E::NoStore { .. } => (
                Exit::NotFormatted,
                "nothing was changed; take another drive",
            ),
            E::Incomplete => (Exit::Damaged, KEEP),
            E::UnsupportedVersion { .. } => {
                (Exit::Failed, "use the program version that made the store")
            }
            E::DriveTooSmall { .. } => (
                Exit::Usage,
                "make the drive larger, or its zones smaller (--zone-size)",
            ),
            E::ReadOnly => return Self::new(Exit::Failed, error),
            E::Failed { .. } => (
                Exit::Failed,
                "what is stored can be read; look after the drive, then start the command again",
            ),
            E::WrittenLost { .. } => (
                Exit::Failed,
                "store it again; `zonestore store health DRIVE` says what else is lost",
            ),
            E::Drive(_) | E::Kv(_) | E::BlueFs(_) => return Self::from_below(error),
        };
        Self::new(exit, error).hint(hint)
    }
}

impl From<bluefs::Error> for CommandError {
    fn from(error: bluefs::Error) -> Self {
        use bluefs::Error as E;
        let (exit, hint) = match &error {
            E::NotFound { .. } => (
                Exit::NotFound,
                "`zonestore fs ls DRIVE` shows what there is",
            ),
            E::NoSpace { .. } => (Exit::NoSpace, "delete files, or take a larger drive"),
            E::Locked { .. } => (Exit::Busy, "stop the other program"),
            E::NotFormatted => (
                Exit::NotFormatted,
                "make a file system: zonestore fs mkfs DRIVE",
            ),
            E::SuperblockLost { .. } => (Exit::Damaged, KEEP),
            E::NotEmpty { .. } | E::OtherRole { .. } => (
                Exit::Refused,
                "take another drive; `mkfs --help` tells how one is erased that nobody needs",
            ),
            E::UnsupportedVersion { .. } => (
                Exit::Failed,
                "use the program version that made the file system",
            ),
            E::Unsuitable { .. } => (
                Exit::Usage,
                "take another drive; nothing was changed on this one",
            ),
            E::DriveTooSmall { .. } => (
                Exit::Usage,
                "make the drive larger, or its zones smaller (--zone-size)",
            ),
            E::UnknownOperation { .. } => (
                Exit::Damaged,
                "use the version of the program that wrote it, and keep a copy of the drive",
            ),
            E::Corrupt { .. }
            | E::SuperblocksDamaged { .. }
            | E::JournalDamaged { .. }
            | E::LogDamaged { .. } => (
                Exit::Damaged,
                "keep a copy of the drive; `zonestore fs fsck DRIVE` says what is missing, and commands \
                 that read go on without it with --accept-damage",
            ),
            E::GeometryChanged { .. } => (Exit::Damaged, "keep a copy of the drive"),
            E::ZoneLost { .. } => (
                Exit::Damaged,
                "zonestore fs fsck DRIVE names all files with bytes in zones that are offline",
            ),
            E::Drive(error) => return error.clone().into(),
            E::Exists { .. }
            | E::IsDirectory { .. }
            | E::NotDirectory { .. }
            | E::DirectoryNotEmpty { .. }
            | E::BadPath { .. }
            | E::Invalid { .. } => return Self::new(Exit::Usage, error),
            E::ZoneStage { .. } => (
                Exit::Failed,
                "nothing was changed by it; `zonestore fs fsck DRIVE` checks the drive",
            ),
            E::ReadOnly | E::Unmounted => return Self::new(Exit::Failed, error),
        };
        Self::new(exit, error).hint(hint)
    }
}

impl From<kv::Error> for CommandError {
    fn from(error: kv::Error) -> Self {
        use kv::Error as E;
        let (exit, hint) = match &error {
            E::NoSpace { .. } => (Exit::NoSpace, "remove objects; `store df` shows the space"),
            E::Corruption { .. } | E::NotFound { .. } => (
                Exit::Damaged,
                "keep a copy of the drive; `zonestore fs fsck --deep DRIVE` says what is damaged",
            ),
            E::Busy { .. } => (Exit::Busy, "try again"),
            E::Invalid { .. } | E::OtherEngine { .. } | E::Io { .. } => {
                return Self::new(Exit::Failed, error);
            }
        };
        Self::new(exit, error).hint(hint)
    }
}

impl From<s3::ServeError> for CommandError {
    fn from(error: s3::ServeError) -> Self {
        match &error {
            s3::ServeError::AddressInUse { .. } => Self::new(Exit::Busy, &error)
                .hint("--s3 HOST:PORT names another; so does `make run PORT=9100`"),
            s3::ServeError::Bind { source, .. } => Self::new(
                exit_of_io(source),
                super::strip_os_error(&error.to_string()),
            ),
        }
    }
}

impl CommandError {
    /// An error of the layers below the store, by its own kind.
    fn from_below(error: store::Error) -> Self {
        match error {
            store::Error::Drive(error) => error.into(),
            store::Error::BlueFs(error) => error.into(),
            store::Error::Kv(error) => error.into(),
            other => Self::new(Exit::Failed, other),
        }
    }
}
