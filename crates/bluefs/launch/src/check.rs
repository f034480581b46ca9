//! Whether a drive may be given to a program.

use crate::error::Error;
use bluefs::{BlueFs, MountOptions, Role};
use device::{Drive, DriveError};
use std::path::Path;
use std::sync::Arc;

/// Makes sure that the drive holds a file system of its own, that nobody uses it, and that it is whole: a
/// program would take a log that is damaged for one that ends there.
///
/// # Errors
/// What keeps a program from it.
pub fn check(path: &Path) -> Result<(), Error> {
    let failed = |source: DriveError| Error::Drive {
        path: path.to_owned(),
        source,
    };
    let writable = Drive::open(path).map_err(failed)?;
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
    let drive = Drive::open_read_only(path).map_err(failed)?;
    let missing = BlueFs::with_mounted(Arc::new(drive), options, |fs| fs.missing())?;
    match missing.into_iter().next() {
        None => Ok(()),
        Some(damage) => Err(Error::Damaged {
            drive: path.to_owned(),
            damage,
        }),
    }
}
