//! A program with the environment in which it finds the drive.

use crate::check::FileSystem;
use crate::error::Error;
use crate::library::{Library, preload};
use crate::watched::{self, End};
use device::FileDriveError;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const URI_VARIABLE: &str = "ZONESTORE_URI";
/// RocksDB's default file system is on the drive.
const DEFAULT_VARIABLE: &str = "ZONESTORE_DEFAULT_FILE_SYSTEM";
/// What answers for the default, of either library.
const DEFAULT_LIBRARY: &str = "libzonestore_preload.so";

/// How a program gets to know of the drive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It takes an address. The library is preloaded for it to mean something.
    Address,
    /// It asks its library for the default, which is answered, and loads the plug-in.
    Default,
}

/// A program that can be started, on a drive that it may have.
pub struct Launch {
    /// The program with its arguments and its environment.
    pub command: Command,
    drive: PathBuf,
    file_system: FileSystem,
    way: Way,
    programs: &'static str,
    /// What of the drive is damaged and concerns a part of it only.
    pub damage: Vec<Error>,
}

impl Launch {
    /// Checks the drive and finds the libraries. What `added` answers is put in front of the program's own
    /// arguments.
    pub(crate) fn new(
        library: &Library,
        drive: &Path,
        file_system: FileSystem,
        program: &[OsString],
        way: Way,
        added: impl FnOnce(&OsStr, &[OsString], &OsStr) -> Vec<OsString>,
    ) -> Result<Self, Error> {
        let path = drive.to_owned();
        let drive = std::fs::canonicalize(drive).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => Error::Drive {
                source: FileDriveError::Missing { path: path.clone() }.into(),
                path,
            },
            _ => Error::File { path, source },
        })?;
        let damage = file_system.check(&drive)?;
        let path = library.find()?;
        let mut uri = OsString::from(file_system.scheme());
        uri.push(&drive);
        let (program, given) = program.split_first().ok_or(Error::NoProgram)?;
        let mut command = Command::new(program);
        command.args(added(program, given, &uri)).args(given);
        command.env(URI_VARIABLE, &uri);
        let preloaded = match way {
            Way::Address => path,
            Way::Default => {
                command.env(library.variable, &path);
                if env::var_os(DEFAULT_VARIABLE).is_none() {
                    command.env(DEFAULT_VARIABLE, "1");
                }
                library.find_file(DEFAULT_LIBRARY)?
            }
        };
        command.env("LD_PRELOAD", preload(&preloaded, env::var_os("LD_PRELOAD")));
        Ok(Self {
            command,
            drive,
            file_system,
            way,
            programs: library.programs,
            damage,
        })
    }

    /// Becomes the program, or runs it to its end.
    ///
    /// # Errors
    /// It cannot be started, or has ended without a word and without having opened the drive.
    pub fn run(mut self) -> Result<End, Error> {
        let error = match self.way {
            Way::Address => self.command.exec(),
            Way::Default => match watched::run(&mut self.command, &self.drive, self.file_system)? {
                Ok(end) => return Ok(end),
                Err(error) => error,
            },
        };
        let program = PathBuf::from(self.command.get_program());
        Err(match error.kind() {
            io::ErrorKind::NotFound => Error::NotFound {
                program,
                from: self.programs,
            },
            _ => Error::File {
                path: program,
                source: error,
            },
        })
    }
}
