//! Checks the file system on a drive before a program gets it.

use crate::error::Error;
use bluefs::{BlueFs, MountOptions, Role};
use device::{Drive, DriveError};
use std::path::Path;
use std::sync::Arc;
use zeafs::Examined;

/// The file system for a program's files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FileSystem {
    /// BlueFS.
    BlueFs,
    /// ZEAFS, for programs that use LevelDB.
    ZeaFs,
}

fn opened(path: &Path, drive: Result<Drive, DriveError>) -> Result<Drive, Error> {
    drive.map_err(|source| Error::Drive {
        path: path.to_owned(),
        source,
    })
}

impl FileSystem {
    /// Prefix of the address of a drive with this file system.
    pub(crate) const fn scheme(self) -> &'static str {
        match self {
            Self::BlueFs => "zonestore://",
            Self::ZeaFs => "zeafs://",
        }
    }

    /// A number that grows with every mount for writing; it can be read without the drive's lock.
    pub(crate) fn generation(self, path: &Path) -> Result<u64, Error> {
        let drive = opened(path, Drive::observe(path))?;
        Ok(match self {
            Self::BlueFs => BlueFs::probe(&drive)?.generation,
            Self::ZeaFs => Examined::epoch_of(&drive)?,
        })
    }

    /// Checks that the drive holds this file system for programs, is not in use, and is intact: a program would take a
    /// damaged log for one that ends there. Returns damage that concerns only some of the databases.
    ///
    /// # Errors
    /// The reason why a program cannot have the drive.
    pub fn check(self, path: &Path) -> Result<Vec<Error>, Error> {
        let writable = opened(path, Drive::open(path))?;
        if self == Self::ZeaFs {
            return damage_of_zeafs(path, &writable);
        }
        if BlueFs::probe(&writable)?.role == Role::Shared {
            let drive = path.to_owned();
            return Err(Error::Shared { drive });
        }
        drop(writable);
        let options = MountOptions {
            read_only: true,
            accept_damage: true,
            ..MountOptions::default()
        };
        let drive = opened(path, Drive::open_read_only(path))?;
        let missing = BlueFs::with_mounted(Arc::new(drive), options, |fs| fs.missing())?;
        match missing.into_iter().next() {
            None => Ok(Vec::new()),
            Some(damage) => Err(Error::Damaged {
                drive: path.to_owned(),
                damage,
            }),
        }
    }
}

/// Damage in databases' files: LevelDB refuses to open such a database, and the others are not affected.
fn damage_of_zeafs(path: &Path, drive: &Drive) -> Result<Vec<Error>, Error> {
    let examined = Examined::of(drive)?;
    // The files may be older than those that a mount, which is refused, would find.
    if let Some(error) = examined.unread() {
        return Err(error.clone().into());
    }
    let files = examined
        .files()
        .filter(|file| zeafs::is_taken_for_whole(file.name));
    let damaged = files.filter_map(|file| {
        Some(Error::DamagedFile {
            drive: path.to_owned(),
            file: file.name.to_owned(),
            damage: Examined::verify(drive, &file).into_iter().next()?,
        })
    });
    Ok(damaged.collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use device::{FileDrive, ZonedDevice, profile};
    use zeafs::ZeaFs;
    use zone::{ZoneCondition, ZoneId};

    /// The files may be older than they were, and a program would take that for all there is.
    #[test]
    fn zeafs_with_unreadable_metadata_is_for_no_program() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.zoned");
        let small = profile::by_name("test-small").unwrap();
        let mut geometry = small.geometry(64 << 20, None).unwrap();
        geometry.conventional_zones = 0;
        let drive = FileDrive::create(&path, &geometry, "test-small").unwrap();
        ZeaFs::format(&drive, [9; 16], false).unwrap();
        drop(drive);
        assert_eq!(FileSystem::ZeaFs.check(&path).unwrap().len(), 0);
        assert_eq!(FileSystem::ZeaFs.generation(&path).unwrap(), 1);
        let drive = FileDrive::open(&path).unwrap();
        drive
            .set_condition(ZoneId(1), ZoneCondition::Offline)
            .unwrap();
        drive.flush().unwrap();
        drop(drive);
        let refused = FileSystem::ZeaFs.check(&path);
        assert!(matches!(refused, Err(Error::ZeaFs(_))), "{refused:?}");
    }
}
