//! Programs that use RocksDB: those that take a file system's address, and all others.

use crate::check::FileSystem;
use crate::error::Error;
use crate::launch::{Launch, Way};
use crate::library::Library;
use std::ffi::{OsStr, OsString};
use std::path::Path;

const LIBRARY: Library = Library {
    file: "libzonestore_rocksdb.so",
    variable: "ZONESTORE_ROCKSDB_LIB",
    programs: "db_bench, ldb and sst_dump come with: apt-get install rocksdb-tools",
};
/// Whether the preloaded library can answer for `rocksdb::FileSystem::Default()`.
const HAS_DEFAULT: bool = cfg!(target_arch = "x86_64");
const DEFAULT_DATABASE: &str = "/db";

/// Prepares a RocksDB program for a drive.
///
/// # Errors
/// The drive is damaged or not for programs, or a library is missing.
pub fn launch(drive: &Path, program: &[OsString]) -> Result<Launch, Error> {
    let way = match HAS_DEFAULT && !takes_address(program) {
        true => Way::Default,
        false => Way::Address,
    };
    let file_system = FileSystem::BlueFs;
    Launch::new(&LIBRARY, drive, file_system, program, way, added_arguments)
}

/// Whether the program reaches the drive only if it passes the address from its environment to RocksDB itself.
pub fn has_to_know(program: &[OsString]) -> bool {
    !HAS_DEFAULT && !takes_address(program)
}

fn takes_address(program: &[OsString]) -> bool {
    program
        .split_first()
        .is_some_and(|(program, given)| knows_uri(program, given))
}

fn name(program: &OsStr) -> &str {
    let name = Path::new(program).file_name();
    name.and_then(OsStr::to_str).unwrap_or_default()
}

/// The command among the arguments of `ldb`: the first that is no option.
fn command(given: &[OsString]) -> &str {
    let mut words = given.iter().filter_map(|word| word.to_str());
    words
        .find(|word| !word.starts_with('-'))
        .unwrap_or_default()
}

/// Whether the program takes an address; others get the drive as the default file system, without a change.
fn knows_uri(program: &OsStr, given: &[OsString]) -> bool {
    match name(program) {
        "db_bench" | "sst_dump" | "db_stress" => true,
        // Two of its commands reject the address.
        "ldb" => !matches!(
            command(given),
            "create_column_family" | "drop_column_family"
        ),
        _ => false,
    }
}

/// Arguments to be inserted before the program's own.
fn added_arguments(program: &OsStr, given: &[OsString], uri: &OsStr) -> Vec<OsString> {
    let name = name(program);
    let mut added = Vec::new();
    let mut tell = |options: [&str; 2]| {
        if !options.iter().any(|option| is_given(given, option)) {
            let mut argument = OsString::from(format!("--{}=", options[0]));
            argument.push(uri);
            added.push(argument);
        }
    };
    if knows_uri(program, given) {
        tell(["fs_uri", "env_uri"]);
    }
    // `ldb` keeps backups beside the database, but by default reads them from the host's file system.
    if name == "ldb" && command(given) == "restore" {
        tell(["backup_fs_uri", "backup_env_uri"]);
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
        let restore = ["restore", "--backup_dir=/b", "--db=/x"];
        assert_eq!(
            added("ldb", &restore),
            ["--fs_uri=zonestore:///d", "--backup_fs_uri=zonestore:///d"]
        );
        assert_eq!(added("ldb", &["create_column_family", "x"]), ["--db=/db"]);
        for key in ["restore", "drop_column_family"] {
            assert_eq!(
                added("ldb", &["--db=/x", "get", key]),
                ["--fs_uri=zonestore:///d"]
            );
        }
        assert_eq!(
            added("sst_dump", &["--file=/db"]),
            ["--fs_uri=zonestore:///d"]
        );
        assert_eq!(added("db_bench", &["-db", "/x", "--fs_uri=y"]), [""; 0]);
        assert_eq!(added("python3", &["x.py"]), [""; 0]);
    }
}
