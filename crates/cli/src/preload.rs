//! Unmodified programs on a drive, by a library that is preloaded into them.
//!
//! Everything that can be checked is checked before the program starts, as it would report it
//! poorly or crash. Then this process becomes a program that takes the drive's address, and watches over
//! one that does not ([`watched`]).

mod watched;

use crate::errors::{CommandError, CommandResult, Exit};
use crate::fs_commands as fs;
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

/// One of our libraries.
pub struct Library {
    /// Its file.
    pub file: &'static str,
    /// The environment variable that names another file.
    pub variable: &'static str,
    /// What to do if the program is not there.
    pub programs: &'static str,
}

/// How a program gets to know of the drive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It takes an address. The library is preloaded for it to mean something.
    Address,
    /// It asks its library for the default, which is answered, and loads the plug-in.
    Default,
}

/// Runs the program, with the arguments that `added` puts in front of its own; comes back only with an
/// error.
pub fn run_program(
    library: &Library,
    drive: &Path,
    program: &[OsString],
    way: Way,
    added: impl FnOnce(&OsStr, &[OsString], &OsStr) -> Vec<OsString>,
) -> CommandResult {
    let drive = std::fs::canonicalize(drive).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => CommandError::from(device::FileDriveError::Missing {
            path: drive.to_owned(),
        }),
        _ => CommandError::file(drive, &error),
    })?;
    fs::check_for_programs(&drive)?;
    let path = library.find()?;
    let mut uri = OsString::from("zonestore://");
    uri.push(&drive);
    let (program, given) = match program.split_first() {
        Some(split) => split,
        None => return Err(CommandError::new(Exit::Usage, "no program is given")),
    };
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
    let error = match way {
        Way::Address => command.exec(),
        Way::Default => match watched::run(&mut command, &drive) {
            Ok(done) => return done,
            Err(error) => error,
        },
    };
    let shown = program.display();
    Err(match error.kind() {
        io::ErrorKind::NotFound => {
            CommandError::new(Exit::NotFound, format_args!("{shown}: not found"))
                .hint(library.programs)
        }
        _ => CommandError::file(Path::new(program), &error),
    })
}

/// Our library behind what is preloaded already: a sanitizer's library has to stay the first.
fn preload(library: &Path, existing: Option<OsString>) -> OsString {
    match existing.filter(|existing| !existing.is_empty()) {
        Some(mut existing) => {
            existing.push(":");
            existing.push(library);
            existing
        }
        None => library.as_os_str().to_owned(),
    }
}

impl Library {
    fn find(&self) -> CommandResult<PathBuf> {
        let variable = self.variable;
        if let Some(named) = env::var_os(variable).filter(|named| !named.is_empty()) {
            let path = std::fs::canonicalize(&named)
                .map_err(|e| CommandError::file(Path::new(&named), &e).context(variable))?;
            return self.preloadable(path);
        }
        self.find_file(self.file)
    }

    /// One of our libraries, beside this program or in `../lib`.
    fn find_file(&self, file: &str) -> CommandResult<PathBuf> {
        let variable = self.variable;
        let folder = env::current_exe()
            .ok()
            .and_then(|path| std::fs::canonicalize(path).ok())
            .and_then(|path| path.parent().map(Path::to_owned))
            .unwrap_or_default();
        let places = [folder.join(file), folder.join("../lib").join(file)];
        for place in &places {
            if let Ok(path) = std::fs::canonicalize(place) {
                return self.preloadable(path);
            }
        }
        Err(CommandError::new(
            Exit::NotFound,
            format_args!(
                "the plug-in {file} is neither in {} nor in ../lib",
                folder.display()
            ),
        )
        .hint(format_args!(
            "build it with `make run` or `cargo build --release --workspace`, or set {variable}"
        )))
    }

    /// The loader splits LD_PRELOAD at spaces and colons; a path with either would be lost silently.
    fn preloadable(&self, path: PathBuf) -> CommandResult<PathBuf> {
        if path
            .as_os_str()
            .as_encoded_bytes()
            .iter()
            .any(|byte| matches!(byte, b' ' | b':'))
        {
            return Err(CommandError::new(
                Exit::Usage,
                format_args!(
                    "{}: a path with a space or a colon cannot be preloaded",
                    path.display()
                ),
            )
            .hint(format_args!(
                "copy the library elsewhere and set {}",
                self.variable
            )));
        }
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_preloaded_already_stays_first() {
        let library = Path::new("/l.so");
        assert_eq!(preload(library, None), "/l.so");
        assert_eq!(preload(library, Some("".into())), "/l.so");
        assert_eq!(preload(library, Some("/asan.so".into())), "/asan.so:/l.so");
    }

    #[test]
    fn paths_that_cannot_be_preloaded_are_refused() {
        let library = Library {
            file: "l.so",
            variable: "L",
            programs: "",
        };
        let refused = library.preloadable("/a b/l.so".into()).unwrap_err();
        assert_eq!(refused.exit, Exit::Usage);
    }
}
