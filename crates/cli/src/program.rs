//! `zonestore rocksdb` and `zonestore leveldb`: run an unmodified program on a drive.

use crate::args::{LeveldbArguments, ProgramArguments, ProgramFiles};
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, sorted};
use crate::output::tell;
use control::Opened;
use device::Drive;
use inspect::Content;
use launch::FileSystem;
use terminal::{shell_text, shell_word};

/// Runs a RocksDB program, and exits with its status; returns only with an error.
pub fn rocksdb(arguments: &ProgramArguments) -> CommandResult {
    drive_file::check_kind(&arguments.drive)?;
    if launch::rocksdb::has_to_know(&arguments.program) {
        tell(format_args!(
            "zonestore: on this kind of processor, only programs that hand the address in ZONESTORE_URI to \
             RocksDB reach the drive (docs/programs.md)"
        ));
    }
    let program = launch::rocksdb::launch(&arguments.drive, &arguments.program)?;
    program.run()?.repeat()
}

/// Runs a LevelDB program, and exits with its status; returns only with an error.
pub fn leveldb(arguments: &LeveldbArguments) -> CommandResult {
    let ProgramArguments { drive, program } = &arguments.program;
    drive_file::check_kind(drive)?;
    let file_system = match arguments.fs {
        Some(ProgramFiles::Bluefs) => FileSystem::BlueFs,
        Some(ProgramFiles::Zeafs) => FileSystem::ZeaFs,
        None => match Content::of(&Drive::observe(drive)?) {
            Content::ZeaFs => FileSystem::ZeaFs,
            _ => FileSystem::BlueFs,
        },
    };
    let program = launch::leveldb::launch(drive, file_system, program)?;
    for damage in &program.damage {
        tell(format_args!("zonestore: warning: {damage}"));
    }
    if !program.damage.is_empty() {
        let drive = shell_word(drive);
        tell(format_args!(
            "hint: its database cannot be opened, all others can; `zonestore zea get|backup {drive}` read files out of it"
        ));
    }
    program.run()?.repeat()
}

impl From<launch::Error> for CommandError {
    fn from(error: launch::Error) -> Self {
        use launch::Error as E;
        let error = match error {
            E::Drive { path, source } => return Opened::refused(&path, source).into(),
            E::BlueFs(error) => return error.into(),
            E::ZeaFs(error) => return error.into(),
            E::File { path, source } => return Self::file(&path, &source),
            E::NamedLibrary {
                variable,
                path,
                source,
            } => {
                return Self::file(&path, &source).context(variable);
            }
            error => error,
        };
        sorted! { error:
            E::NoProgram => Usage;
            E::Shared { .. } => Refused,
                "take another drive: zonestore drive create, then zonestore fs mkfs";
            E::Damaged { drive, damage: bluefs::Error::ZoneLost { path, .. } } => Damaged, format!(
                "all other files can be read and written; `zonestore fs rm {} {}` gives this one up; a \
                 database that is repaired without it lacks what it held", shell_word(drive), shell_text(path.as_bytes())
            );
            E::Damaged { .. } => Damaged,
                "keep a copy; zonestore fs fsck says more, and --repair goes on without what is lost";
            E::DamagedFile { .. } => Damaged;
            E::NotFound { from, .. } => NotFound, from;
            E::NoLibrary { variable: Some(variable), .. } => NotFound, format!(
                "build it with `make run` or `cargo build --release --workspace`, or set {variable}"
            );
            E::NoLibrary { .. } => NotFound, "build it with `make run` or `cargo build --release --workspace`";
            E::NotPreloadable { variable, .. } => Usage,
                format!("copy the library elsewhere and set {variable}");
            E::NotReached { .. } => Failed, "docs/programs.md says which programs can be reached";
            E::Drive { .. } | E::BlueFs(_) | E::ZeaFs(_) | E::File { .. } | E::NamedLibrary { .. } => Failed;
        }
    }
}
