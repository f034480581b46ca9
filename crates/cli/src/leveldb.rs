//! `zonestore leveldb`: an unmodified LevelDB program on a drive.

use crate::args::LeveldbArguments;
use crate::errors::CommandResult;
use crate::preload::{Library, become_program};

const LIBRARY: Library = Library {
    file: "libzonestore_leveldb.so",
    variable: "ZONESTORE_LEVELDB_LIB",
    programs: "give a program that is linked with libleveldb, or its path",
};

/// Becomes the program; comes back only with an error. Nothing is added to its arguments: it asks
/// for its environment without knowing.
pub fn run(arguments: &LeveldbArguments) -> CommandResult {
    let nothing = |_: &_, _: &_, _: &_| Vec::new();
    become_program(
        &LIBRARY,
        &arguments.drive,
        &arguments.program,
        false,
        nothing,
    )
}
