//! Errors of a store's archives.

use super::CommandError;

impl From<archive::Error> for CommandError {
    fn from(error: archive::Error) -> Self {
        use archive::Error as E;
        let error = match error {
            E::Store(error) => return error.into(),
            E::Io(error) => return error.into(),
            E::Unreadable { object, source } => {
                let made = Self::from(source);
                return match made.exit {
                    super::Exit::Damaged => made.hint(
                        "--skip-damaged goes on with what can be read, and names what cannot; `zonestore store scrub \
                         DRIVE --deep` finds all of it, and writes it down for `store health`",
                    ),
                    _ => made.context(object),
                };
            }
            error => error,
        };
        sorted! { error:
            E::NamesLost { .. } => Damaged, "make a full backup with --skip-damaged: another file, and without --since";
            E::NothingSelected { .. } => NotFound, "`zonestore store ls DRIVE` shows what there is";
            E::Guarded { .. } => Refused,
                "leave --overwrite out, or remove it first: `zonestore store rm --break-locks`";
            E::Unfinished => Refused,
                "`store restore` with the same archives goes on; `store mkfs --force` gives it up, and a `store backup` \
                 to this drive begins again behind that";
            E::Compressed { with } => Usage, format!("`{with} -dc ARCHIVE | zonestore store … -` undoes that on the way");
            E::NoArchive => Usage, "name what `store export` or `store backup` wrote";
            E::Version { .. } => Failed, "use the program version that made it";
            E::CutOff { .. } | E::Corrupt { .. } | E::Content { .. } => Damaged,
                "take another copy of the archive; objects that were stored from it are whole";
            E::Incremental => Usage, "`store restore FULL INCREMENTAL… --to DRIVE` takes it with those it builds on";
            E::NotFull { .. } | E::NotNext { .. } => Usage,
                "name the full backup first, then each one that was made --since the one before it";
            E::NotEmpty => Refused, "restore into an empty store: `zonestore store mkfs`; `store import` adds objects";
            E::OtherArchives => Refused,
                "restore those first, or give up what is there: `zonestore store mkfs --force` (also behind a `store \
                 backup` to this drive that was cut short)";
            E::Missing { .. } => Damaged, "make a new full backup, and keep these archives";
            E::SeveralCollections { .. } => Usage, "import without --into, or export one collection";
            E::WrongParent { .. } => Usage, "--since takes the last backup of this store; without it the backup is a full one";
            E::Store(_) | E::Io(_) | E::Unreadable { .. } => Failed;
        }
    }
}
