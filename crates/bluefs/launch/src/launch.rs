//! Prepares a program with an environment in which it finds the drive.

use crate::check::FileSystem;
use crate::error::Error;
use crate::inherited;
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
/// Environment variable for the plug-in: 1 makes the drive RocksDB's default file system.
const DEFAULT_VARIABLE: &str = "ZONESTORE_DEFAULT_FILE_SYSTEM";
/// The library that answers a program's request for the default file system or environment, for RocksDB and LevelDB.
const DEFAULT_LIBRARY: &str = "libzonestore_preload.so";

/// How a program reaches the drive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The program takes an address, which the preloaded plug-in makes known to its library.
    Address,
    /// The program asks its library for the default, which the preloaded `DEFAULT_LIBRARY` answers by the plug-in.
    Default,
}

/// A program that is ready to be started on a drive that has been checked.
pub struct Launch {
    /// The program with its arguments and its environment.
    pub command: Command,
    drive: PathBuf,
    file_system: FileSystem,
    way: Way,
    programs: &'static str,
    /// Damage on the drive that concerns only some of its databases.
    pub damage: Vec<Error>,
}

impl Launch {
    /// Checks the drive, finds the libraries and sets up the command. `added` gets the program, its arguments and the
    /// drive's address; the arguments that it returns are inserted before the program's own.
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

    /// Replaces this process by the program, or runs it to its end.
    ///
    /// # Errors
    /// The program cannot be started, or has ended with code 0 without opening the drive and left no process running.
    pub fn run(mut self) -> Result<End, Error> {
        inherited::pass_on(&mut self.command);
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
