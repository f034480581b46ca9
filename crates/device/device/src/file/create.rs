//! Creates a drive file. It gets its name only when it is complete and durable, so that a kill in between
//! leaves nothing that looks like a drive; what it leaves, the next creation under that name removes.

use super::FileDriveError;
use super::beside;
use super::format::{self, DriveUuid, Header};
use crate::rules::ZoneTable;
use runtime::{LockedFile, Runtime};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use zone::Geometry;

/// The optional properties of a new drive file.
#[derive(Clone, Default, Debug)]
pub struct CreateOptions {
    /// The profile it is made from, at most 63 bytes.
    pub profile_name: String,
    /// A name for people, at most 127 bytes.
    pub label: String,
    /// The drive's UUID; random if `None`.
    pub uuid: Option<DriveUuid>,
}

/// Creates the file for `path`, which has no name there yet, and returns it open and locked.
pub(super) fn create(
    path: &Path,
    geometry: &Geometry,
    options: CreateOptions,
) -> Result<(Unfinished, LockedFile, Header), FileDriveError> {
    geometry.validate()?;
    if geometry.zone_count > format::MAX_ZONES {
        let (zone_count, max) = (geometry.zone_count, format::MAX_ZONES);
        return Err(FileDriveError::TooManyZones { zone_count, max });
    }
    let bytes = format::file_bytes(geometry).ok_or(FileDriveError::TooLargeForHost {
        path: path.into(),
        bytes: u64::MAX,
    })?;
    check_name(
        "profile name",
        &options.profile_name,
        format::PROFILE_NAME_BYTES,
    )?;
    check_name("label", &options.label, format::LABEL_BYTES)?;
    let host_error = |source: io::Error| match source.kind() {
        io::ErrorKind::FileTooLarge => FileDriveError::TooLargeForHost {
            path: path.into(),
            bytes,
        },
        _ => host_error(path, source),
    };
    if path.symlink_metadata().is_ok() {
        return Err(FileDriveError::Exists { path: path.into() });
    }
    let unique = random_uuid().map_err(host_error)?;
    let header = Header {
        version: format::VERSION,
        uuid: options.uuid.unwrap_or(unique),
        geometry: geometry.clone(),
        profile_name: options.profile_name,
        label: options.label,
    };
    let table = ZoneTable::new(geometry.clone())?;
    remove_left(path);
    let unfinished = Unfinished::new(path, unique);
    let file = unfinished.create().map_err(host_error)?;
    file.set_len(bytes).map_err(host_error)?;
    write_table(&file, &table).map_err(host_error)?;
    file.write_all_at(&format::encode_header(&header), 0)
        .map_err(host_error)?;
    file.sync_all().map_err(host_error)?;
    Ok((unfinished, file, header))
}

fn host_error(path: &Path, source: io::Error) -> FileDriveError {
    let path = path.into();
    match source.kind() {
        io::ErrorKind::StorageFull => FileDriveError::HostFull { path },
        io::ErrorKind::AlreadyExists => FileDriveError::Exists { path },
        _ => FileDriveError::Io { path, source },
    }
}

fn check_name(what: &'static str, name: &str, max: usize) -> Result<(), FileDriveError> {
    if name.len() <= max {
        return Ok(());
    }
    Err(FileDriveError::NameTooLong {
        what,
        length: name.len(),
        max,
    })
}

fn write_table(mut file: &File, table: &ZoneTable) -> io::Result<()> {
    file.seek(SeekFrom::Start(format::TABLE_OFFSET))?;
    let mut writer = BufWriter::with_capacity(1 << 16, file);
    let geometry = table.geometry();
    for zone in geometry.zones() {
        let entry = format::encode_entry(zone, geometry.kind(zone), table.rested(zone).into());
        writer.write_all(&entry)?;
    }
    writer.flush()
}

fn random_uuid() -> io::Result<DriveUuid> {
    let mut bytes = Runtime::system().bytes::<16>()?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Ok(DriveUuid(bytes))
}

/// Ending of the temporary names, behind a UUID.
const ENDING: &str = ".new";

/// Start of the temporary names of a file, before a UUID.
fn beginning(path: &Path) -> OsString {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".");
    name
}

/// Removes what killed processes have left of drives that they were creating at `path`. What cannot be removed takes
/// space and is in nobody's way.
fn remove_left(path: &Path) {
    let beginning = beginning(path);
    let left = |name: &OsStr| {
        let name = name.as_bytes().strip_prefix(beginning.as_bytes())?;
        let unique = name.strip_suffix(ENDING.as_bytes())?;
        (unique.len() == 36).then_some(())
    };
    for entry in std::fs::read_dir(folder(path))
        .into_iter()
        .flatten()
        .flatten()
    {
        if left(&entry.file_name()).is_none() || !entry.file_type().is_ok_and(|kind| kind.is_file())
        {
            continue;
        }
        // One that is being created is locked.
        if let Ok(file) = File::open(entry.path())
            && let Ok(_lock) = LockedFile::exclusive(file)
        {
            remove(&entry.path());
        }
    }
}

/// Removes a drive under a temporary name.
fn remove(path: &Path) {
    let _ = std::fs::remove_file(beside::name(path));
    let _ = std::fs::remove_file(path);
}

fn folder(path: &Path) -> &Path {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// The file under a temporary name in the same directory; removed when dropped.
pub(super) struct Unfinished {
    path: PathBuf,
}

impl Unfinished {
    fn new(path: &Path, unique: DriveUuid) -> Self {
        let mut name = beginning(path);
        name.push(format!("{unique}{ENDING}"));
        Self {
            path: path.with_file_name(name),
        }
    }

    /// The temporary name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Only its owner may read it: it will have everybody's data.
    fn create(&self) -> io::Result<LockedFile> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&self.path)?;
        // Locked before it gets its name, so that no other process can open it first.
        LockedFile::exclusive(file).map_err(|error| match error {
            TryLockError::WouldBlock => io::ErrorKind::ResourceBusy.into(),
            TryLockError::Error(source) => source,
        })
    }

    /// Renames the file to `path`, if nothing has that name yet, and makes the name durable.
    pub fn publish(self, path: &Path) -> Result<(), FileDriveError> {
        self.rename(path).map_err(|error| host_error(path, error))
    }

    fn rename(&self, path: &Path) -> io::Result<()> {
        match renameat_with(CWD, &self.path, CWD, path, RenameFlags::NOREPLACE) {
            // File systems that do not support this rename may support links.
            Err(Errno::INVAL | Errno::NOSYS) => std::fs::hard_link(&self.path, path)?,
            done => done?,
        }
        File::open(folder(path))?.sync_all()
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After a rename there is nothing left to remove; an error cannot be reported here.
        remove(&self.path);
    }
}
