//! Grades a drive by its failures, as `smartctl -H` does.

use serde::{Deserialize, Serialize};
use std::fmt;
use zone::count;

/// Share of lost zones above which a drive is failing.
const MOST_LOST: f64 = 0.01;

/// Judgement of a drive from its [`Wear`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// No failure is known.
    #[default]
    Good,
    /// It works, but something has failed: watch it.
    Worn,
    /// Copy its data while that can be read.
    Failing,
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Good => "good",
            Self::Worn => "worn",
            Self::Failing => "failing",
        })
    }
}

/// Failures of the drive: zones that are lost for good, and the other counters since the mount.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Wear {
    /// Zones of the drive.
    pub zones: u32,
    /// Zones that are read-only, offline, out of use or unreadable.
    pub zones_lost: u32,
    /// Writes and resets that failed.
    pub failed_commands: u64,
    /// Reads that failed once and succeeded when repeated.
    pub reads_repeated: u64,
    /// Commands that took ten seconds or more.
    pub slow_commands: u64,
    /// Pairs of zones with metadata of which one is damaged.
    pub damaged_copies: u32,
}

impl Grade {
    /// The grade that follows from these failures.
    pub fn of(wear: &Wear) -> Self {
        if f64::from(wear.zones_lost) > f64::from(wear.zones) * MOST_LOST {
            Self::Failing
        } else if wear.lines().is_empty() {
            Self::Good
        } else {
            Self::Worn
        }
    }
}

impl Wear {
    /// The failures in words; empty if there are none.
    pub fn lines(&self) -> Vec<String> {
        let lost = count(self.zones_lost.into(), "zone");
        let all = [
            (
                self.zones_lost.into(),
                format!("{lost} of {} lost or at risk", self.zones),
            ),
            (
                self.failed_commands,
                format!("{} failed", count(self.failed_commands, "write or reset")),
            ),
            (
                self.reads_repeated,
                format!(
                    "{} had to be made again",
                    count(self.reads_repeated, "read")
                ),
            ),
            (
                self.slow_commands,
                format!(
                    "{} took ten seconds or more",
                    count(self.slow_commands, "command")
                ),
            ),
            (
                self.damaged_copies.into(),
                format!(
                    "one copy of metadata damaged in {}",
                    count(self.damaged_copies.into(), "pair of zones")
                ),
            ),
        ];
        let some = all.into_iter().filter(|(count, _)| *count > 0);
        some.map(|(_, words)| words).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grade_follows_from_what_has_failed() {
        let new = Wear {
            zones: 1000,
            ..Wear::default()
        };
        assert_eq!(Grade::of(&new), Grade::Good);
        let lost = |zones_lost| Wear { zones_lost, ..new };
        assert_eq!(Grade::of(&lost(1)), Grade::Worn);
        assert_eq!(Grade::of(&lost(10)), Grade::Worn);
        assert_eq!(Grade::of(&lost(11)), Grade::Failing);
        let slow = Wear {
            slow_commands: 1,
            ..new
        };
        assert_eq!(Grade::of(&slow), Grade::Worn);
        assert_eq!(slow.lines(), ["1 command took ten seconds or more"]);
    }
}
