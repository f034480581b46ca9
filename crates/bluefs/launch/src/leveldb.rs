//! Programs that use LevelDB. They take no address and get the drive as their default environment.

use crate::check::FileSystem;
use crate::error::Error;
use crate::launch::{Launch, Way};
use crate::library::Library;
use std::ffi::OsString;
use std::path::Path;

const LIBRARY: Library = Library {
    file: "libzonestore_leveldb.so",
    variable: "ZONESTORE_LEVELDB_LIB",
    programs: "give a program that is linked with libleveldb, or its path",
};

/// Prepares a LevelDB program for a drive. Its arguments are not changed.
///
/// # Errors
/// The drive is damaged or not for programs, or a library is missing.
pub fn launch(
    drive: &Path,
    file_system: FileSystem,
    program: &[OsString],
) -> Result<Launch, Error> {
    let nothing = |_: &_, _: &_, _: &_| Vec::new();
    Launch::new(&LIBRARY, drive, file_system, program, Way::Default, nothing)
}
