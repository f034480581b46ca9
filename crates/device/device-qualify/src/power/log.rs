//! The log of the power test, in text: one line for the head of a round, one for each completed flush, one if the
//! round ended as asked, and one for the outcome of a check.

use super::check::Kept;
use super::round::{LOG_VERSION, Round};
use serde::Deserialize;
use std::io::{self, BufRead};
use thiserror::Error;

/// One round of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Logged {
    /// The round, from which its commands follow.
    pub round: Round,
    /// Number of the last flush that completed; 0 if none did.
    pub flushed: u64,
    /// Whether the round ended as asked or because of an error of a drive that still answered, and not by a loss of power.
    pub ended_as_asked: bool,
    /// The outcome of the check; `None` if there was none yet.
    pub kept: Option<Kept>,
}

/// The rounds of a log.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Rounds {
    /// In the order of the log.
    pub rounds: Vec<Logged>,
    /// Bytes of the log up to the end of its last whole line, where the next line has to be appended.
    pub whole_bytes: u64,
}

/// Why a log cannot be used.
#[derive(Debug, Error)]
pub enum LogError {
    /// The log cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A line is not one that this test writes.
    #[error("line {line} is not of a log of this test")]
    Line {
        /// Its number, from 1.
        line: usize,
    },
    /// Another version of this program wrote the log.
    #[error("the log is of version {found}, and this program reads version {LOG_VERSION}")]
    Version {
        /// The version in the log.
        found: u32,
    },
    /// The log contains no round.
    #[error("the log is empty: no round of the test has begun")]
    Empty,
}

/// The part of a round's head that all versions have.
#[derive(Deserialize)]
struct AnyHead {
    version: u32,
}

impl Rounds {
    /// The line that says that a round did not end by a loss of power.
    pub const ENDED: &str = "ended as asked\n";

    /// Reads a log. The last line may be torn, because it was being written when the power went, and is left
    /// out.
    ///
    /// # Errors
    /// The log cannot be read, or is not a log of this test.
    pub fn read(mut log: impl BufRead) -> Result<Self, LogError> {
        let mut rounds = Self::default();
        let mut text = Vec::new();
        for line in 1.. {
            text.clear();
            let bytes = log.read_until(b'\n', &mut text)?;
            if bytes == 0 || text.last() != Some(&b'\n') {
                break;
            }
            rounds.whole_bytes += bytes as u64;
            let bad = || LogError::Line { line };
            let text = std::str::from_utf8(&text).map_err(|_| bad())?.trim_end();
            if let Some(head) = text.strip_prefix("round ") {
                let AnyHead { version } = serde_json::from_str(head).map_err(|_| bad())?;
                if version != LOG_VERSION {
                    return Err(LogError::Version { found: version });
                }
                let round = serde_json::from_str(head).map_err(|_| bad())?;
                rounds.rounds.push(Logged {
                    round,
                    flushed: 0,
                    ended_as_asked: false,
                    kept: None,
                });
            } else if let Some(number) = text.strip_prefix("flushed ") {
                let number: u64 = number.parse().map_err(|_| bad())?;
                let round = rounds.rounds.last_mut().ok_or_else(bad)?;
                if Some(number) != round.flushed.checked_add(1) {
                    return Err(bad());
                }
                round.flushed = number;
            } else if text == Self::ENDED.trim_end() {
                rounds.rounds.last_mut().ok_or_else(bad)?.ended_as_asked = true;
            } else if let Some(kept) = text.strip_prefix("kept ") {
                let kept = serde_json::from_str(kept).map_err(|_| bad())?;
                rounds.rounds.last_mut().ok_or_else(bad)?.kept = Some(kept);
            } else {
                return Err(bad());
            }
        }
        if rounds.rounds.is_empty() {
            return Err(LogError::Empty);
        }
        Ok(rounds)
    }

    /// The line that begins a round in a log.
    pub fn head(round: &Round) -> String {
        // Plain numbers can always be written as JSON.
        format!("round {}\n", serde_json::json!(round))
    }

    /// The line that records the outcome of a check of the round.
    pub fn kept(kept: &Kept) -> String {
        format!("kept {}\n", serde_json::json!(kept))
    }

    /// The line that records a completed flush.
    pub fn flushed(number: u64) -> String {
        format!("flushed {number}\n")
    }
}
