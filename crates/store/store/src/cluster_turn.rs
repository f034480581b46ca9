//! A cluster's statement on when a drive may clean ahead, so that the replicas of an object are not cleaned at the
//! same time. Pure: the moment comes from the caller.
//!
//! Each statement expires by itself: a drive whose cluster falls silent decides for itself again. It is not kept on
//! the drive, and it holds back neither a writer that needs a zone nor the cleaner once zones are urgently needed.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Longest time in a statement, in seconds, and so the longest time that a drive is held back after its cluster is
/// gone.
pub const MAX_SECONDS: u32 = 300;

/// Longest time that a drive is expected to wait for its turn: zones that will be filled meanwhile are cleaned in
/// advance.
pub(crate) const AHEAD: Duration = Duration::from_secs(60);

/// This drive's turn lasts `turn_seconds` from now; then the drive is held back until `hold_seconds` from now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Said", into = "Said")]
pub struct ClusterTurn {
    turn_seconds: u32,
    hold_seconds: u32,
}

/// Wire form of a [`ClusterTurn`], not yet checked.
#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
struct Said {
    turn_seconds: u32,
    hold_seconds: u32,
}

/// A time is above [`MAX_SECONDS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("at most {MAX_SECONDS} seconds can be said at once: say it again before they are over")]
pub struct TooLong;

impl ClusterTurn {
    /// A turn of `turn_seconds` from now, after which the cleaner is held back until `hold_seconds` from now. Zeros
    /// leave the drive to itself.
    ///
    /// # Errors
    /// One of them is above [`MAX_SECONDS`].
    pub const fn new(turn_seconds: u32, hold_seconds: u32) -> Result<Self, TooLong> {
        if turn_seconds > MAX_SECONDS || hold_seconds > MAX_SECONDS {
            return Err(TooLong);
        }
        Ok(Self {
            turn_seconds,
            hold_seconds,
        })
    }

    /// The end of the turn and of the hold, for a statement made at `now`.
    pub(crate) fn at(self, now: Duration) -> Until {
        let after = |seconds: u32| now + Duration::from_secs(seconds.into());
        Until {
            turn: after(self.turn_seconds),
            hold: after(self.hold_seconds),
        }
    }
}

impl TryFrom<Said> for ClusterTurn {
    type Error = TooLong;

    fn try_from(said: Said) -> Result<Self, TooLong> {
        Self::new(said.turn_seconds, said.hold_seconds)
    }
}

impl From<ClusterTurn> for Said {
    fn from(turn: ClusterTurn) -> Self {
        Self {
            turn_seconds: turn.turn_seconds,
            hold_seconds: turn.hold_seconds,
        }
    }
}

/// When the drive's turn ends, and when the hold after it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Until {
    turn: Duration,
    hold: Duration,
}

impl Until {
    /// Whether it is another drive's turn to clean.
    pub fn holds(self, now: Duration) -> bool {
        self.turn <= now && now < self.hold
    }

    /// Whether a statement is in force, be it a turn or a hold.
    pub fn speaks(self, now: Duration) -> bool {
        now < self.turn.max(self.hold)
    }

    /// When [`Self::holds`] may next change, if ever.
    pub fn changes(self, now: Duration) -> Option<Duration> {
        [self.turn, self.hold]
            .into_iter()
            .filter(|at| *at > now)
            .min()
    }

    /// Seconds left until the end of the turn, and until the end of the hold, rounded up.
    pub fn left(self, now: Duration) -> (u32, u32) {
        let left = |until: Duration| until.saturating_sub(now).as_millis().div_ceil(1000);
        let seconds = |until| u32::try_from(left(until)).unwrap_or(u32::MAX);
        (seconds(self.turn), seconds(self.hold))
    }
}

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_turn_goes_before_a_hold_and_both_end_by_themselves() {
        let until = ClusterTurn::new(10, 30).unwrap().at(at(100));
        let holds = [100, 109, 110, 129, 130].map(|now| until.holds(at(now)));
        assert_eq!(holds, [false, false, true, true, false]);
        let changes = [100, 110, 129, 130].map(|now| until.changes(at(now)));
        assert_eq!(changes, [Some(at(110)), Some(at(130)), Some(at(130)), None]);
        assert_eq!(until.left(at(105)), (5, 25));
        assert_eq!(until.left(at(200)), (0, 0));
        assert!(!Until::default().holds(Duration::ZERO));
        let speaks = [100, 129, 130].map(|now| until.speaks(at(now)));
        assert_eq!(speaks, [true, true, false]);
        let only_held = ClusterTurn::new(0, 5).unwrap().at(at(7));
        assert!(only_held.holds(at(7)) && !only_held.holds(at(12)));
        assert!(!ClusterTurn::new(0, 0).unwrap().at(at(7)).holds(at(7)));
    }

    #[test]
    fn what_is_sent_is_bounded_and_known() {
        let read = serde_json::from_str::<ClusterTurn>;
        assert_eq!(
            read(r#"{"hold_seconds": 300}"#).unwrap(),
            ClusterTurn::new(0, 300).unwrap()
        );
        for bad in [
            r#"{"hold_seconds": 301}"#,
            r#"{"turn_seconds": 4000000000}"#,
            r#"{"turn_seconds": -1}"#,
            r#"{"seconds": 1}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
