//! `zonestore leveldb`: an unmodified LevelDB program on a drive.

use crate::args::LeveldbArguments;
use crate::errors::CommandResult;
use crate::preload::{Library, Way, run_program};

const LIBRARY: Library = Library {
    file: "libzonestore_leveldb.so",
    variable: "ZONESTORE_LEVELDB_LIB",
    programs: "give a program that is linked with libleveldb, or its path",
};

/// Runs the program; comes back only with an error. Nothing is added to its arguments: it asks
/// for its environment without knowing.
pub fn run(arguments: &LeveldbArguments) -> CommandResult {
    let nothing = |_: &_, _: &_, _: &_| Vec::new();
    let (drive, program) = (&arguments.drive, &arguments.program);
    run_program(&LIBRARY, drive, program, Way::Default, nothing)
}
