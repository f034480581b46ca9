//! The exit codes.

/// Exit codes, each with the word that programs get in the JSON form of an error, and a line of `--help`.
macro_rules! exit_codes {
    ($($name:ident = $code:literal $word:literal $help:literal)+) => {
        /// The exit codes of `zonestore`; part of the interface, so numbers never change their meaning.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Exit {
            $($name = $code,)+
        }

        impl Exit {
            /// The word that programs get in the JSON form of an error.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }
        }

        /// What each means, for `--help`.
        const HELP: &[(u8, &str)] = &[$(($code, $help)),+];
    };
}

exit_codes! {
    Failed = 1 "failed" "failed"
    Usage = 2 "usage" "the command line does not make sense"
    NotFound = 3 "not_found" "not found: a drive, collection, object, file, program or server"
    Busy = 4 "in_use" "in use: a drive that another process holds, a port that is taken"
    NoSpace = 5 "no_space" "no space, on the drive or on the host's disk"
    Damaged = 6 "damaged" "damaged: a checksum does not match, a file is no drive, fsck found errors"
    NotFormatted = 7 "not_formatted" "the drive is not formatted"
    Refused = 8 "refused" "refused: it would destroy data (see --force, --yes)"
    Lost = 9 "lost" "repaired, and something that was stored is gone (fs fsck --repair)"
    AtRisk = 10 "at_risk" "store health: something is lost or at risk"
    WritesStopped = 11 "writes_stopped" "serve --exit-on-failure: nothing could be written any more"
    OutOfTolerance = 12 "out_of_tolerance" "experiment run: something that was measured is out of its tolerance"
    // What a shell says of a program that SIGPIPE ended. Without a word on standard error.
    ReaderGone = 141 "reader_gone" "nobody reads the output any more, as in `| head`"
}

/// The table of exit codes, for `--help`.
pub fn exit_codes() -> String {
    let interrupted =
        "ended by Ctrl-C; work that cleans up behind itself first says so and ends with 1";
    let mut lines: Vec<_> = [(0, "done"), (130, interrupted)]
        .into_iter()
        .chain(HELP.iter().copied())
        .collect();
    lines.sort_unstable();
    let lines = lines
        .iter()
        .map(|(code, help)| format!("{code:>3}  {help}\n"));
    format!(
        "Exit codes:\n{}\nWith --json an error is one line on standard error: {{\"error\": {{\"kind\", \
         \"exit_code\", \"message\",\n\"hint\"}}}}.",
        lines.collect::<String>()
    )
}
