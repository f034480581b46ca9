//! `zonestore rocksdb`: an unmodified RocksDB program on a drive.
//!
//! Everything that can be checked is checked before the program starts, as it would report it
//! poorly or crash; then this process becomes the program.

use crate::args::RocksdbArguments;
use crate::errors::{CommandError, CommandResult, Exit};
use crate::fs_commands as fs;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARY: &str = "libzonestore_rocksdb.so";
const LIBRARY_VARIABLE: &str = "ZONESTORE_ROCKSDB_LIB";
const URI_VARIABLE: &str = "ZONESTORE_URI";
const DEFAULT_DATABASE: &str = "/db";

/// Becomes the program; comes back only with an error.
pub fn run(arguments: &RocksdbArguments) -> CommandResult {
    let drive = std::fs::canonicalize(&arguments.drive).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => CommandError::from(device::FileDriveError::Missing {
            path: arguments.drive.clone(),
        }),
        _ => CommandError::file(&arguments.drive, &error),
    })?;
    fs::check_for_programs(&drive)?;
    let library = find_library()?;
    let mut uri = OsString::from("zonestore://");
    uri.push(&drive);
    let (program, given) = match arguments.program.split_first() {
        Some(split) => split,
        None => return Err(CommandError::new(Exit::Usage, "no program is given")),
    };
    let mut command = Command::new(program);
    command
        .args(added_arguments(program, given, &uri))
        .args(given);
    command.env("LD_PRELOAD", preload(&library, env::var_os("LD_PRELOAD")));
    command.env(URI_VARIABLE, &uri);
    let error = command.exec();
    let shown = program.display();
    Err(match error.kind() {
        io::ErrorKind::NotFound => {
            CommandError::new(Exit::NotFound, format_args!("{shown}: not found"))
                .hint("db_bench, ldb and sst_dump come with: apt-get install rocksdb-tools")
        }
        _ => CommandError::file(Path::new(program), &error),
    })
}

/// What is to be put in front of the program's own arguments.
fn added_arguments(program: &OsStr, given: &[OsString], uri: &OsStr) -> Vec<OsString> {
    let name = Path::new(program)
        .file_name()
        .and_then(OsStr::to_str)
        .unwrap_or_default();
    let mut added = Vec::new();
    let knows_uri = matches!(name, "db_bench" | "ldb" | "sst_dump" | "db_stress");
    if knows_uri && !is_given(given, "fs_uri") && !is_given(given, "env_uri") {
        let mut argument = OsString::from("--fs_uri=");
        argument.push(uri);
        added.push(argument);
    }
    if matches!(name, "db_bench" | "ldb") && !is_given(given, "db") {
        added.push(OsString::from(format!("--db={DEFAULT_DATABASE}")));
    }
    added
}

/// Whether an option is among the arguments, with one dash or two, with `=` or without.
fn is_given(arguments: &[OsString], option: &str) -> bool {
    arguments
        .iter()
        .filter_map(|argument| argument.to_str())
        .any(|argument| {
            let name = argument
                .strip_prefix("--")
                .or_else(|| argument.strip_prefix('-'));
            name.is_some_and(|name| name.split('=').next() == Some(option))
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

fn find_library() -> CommandResult<PathBuf> {
    if let Some(named) = env::var_os(LIBRARY_VARIABLE).filter(|named| !named.is_empty()) {
        let path = std::fs::canonicalize(&named)
            .map_err(|e| CommandError::file(Path::new(&named), &e).context(LIBRARY_VARIABLE))?;
        return preloadable(path);
    }
    let folder = env::current_exe()
        .ok()
        .and_then(|path| std::fs::canonicalize(path).ok())
        .and_then(|path| path.parent().map(Path::to_owned))
        .unwrap_or_default();
    let places = [folder.join(LIBRARY), folder.join("../lib").join(LIBRARY)];
    for place in &places {
        if let Ok(path) = std::fs::canonicalize(place) {
            return preloadable(path);
        }
    }
    Err(CommandError::new(
        Exit::NotFound,
        format_args!(
            "the plug-in {LIBRARY} is neither in {} nor in ../lib",
            folder.display()
        ),
    )
    .hint(format_args!(
        "build it with `make run` or `cargo build --release --workspace`, or set {LIBRARY_VARIABLE}"
    )))
}

/// The loader splits LD_PRELOAD at spaces and colons; a path with either would be lost silently.
fn preloadable(path: PathBuf) -> CommandResult<PathBuf> {
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
            "copy the library elsewhere and set {LIBRARY_VARIABLE}"
        )));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(program: &str, given: &[&str]) -> Vec<String> {
        let given: Vec<OsString> = given.iter().map(OsString::from).collect();
        added_arguments(OsStr::new(program), &given, OsStr::new("zonestore:///d"))
            .into_iter()
            .map(|argument| argument.into_string().unwrap())
            .collect()
    }

    #[test]
    fn known_programs_are_told_where_the_drive_is() {
        assert_eq!(
            added("/usr/bin/db_bench", &[]),
            ["--fs_uri=zonestore:///d", "--db=/db"]
        );
        assert_eq!(
            added("ldb", &["scan", "--db=/x"]),
            ["--fs_uri=zonestore:///d"]
        );
        assert_eq!(
            added("sst_dump", &["--file=/db"]),
            ["--fs_uri=zonestore:///d"]
        );
        assert_eq!(added("db_bench", &["-db", "/x", "--fs_uri=y"]), [""; 0]);
        assert_eq!(added("python3", &["x.py"]), [""; 0]);
    }

    #[test]
    fn what_is_preloaded_already_stays_first() {
        let library = Path::new("/l.so");
        assert_eq!(preload(library, None), "/l.so");
        assert_eq!(preload(library, Some("".into())), "/l.so");
        assert_eq!(preload(library, Some("/asan.so".into())), "/asan.so:/l.so");
    }

    #[test]
    fn paths_that_cannot_be_preloaded_are_refused() {
        assert_eq!(
            preloadable("/a b/l.so".into()).unwrap_err().exit,
            Exit::Usage
        );
    }
}
