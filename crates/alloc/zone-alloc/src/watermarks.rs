//! How many zones the background cleaner keeps free.

use crate::Pressure;
use crate::ahead::{Allowed, Supply};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The most that can be kept free: above that, hardly anything could be stored.
const MAX_PERCENT: u32 = 90;

/// A number of free zones, absolute or in per cent of the zones that data may fill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FreeZones {
    /// A fixed number, however large the drive is.
    Count(u32),
    /// A share of the zones that data may fill.
    Percent(u32),
}

impl FreeZones {
    /// The absolute number, for `zones` zones that data may fill.
    pub fn of(self, zones: u32) -> u32 {
        match self {
            Self::Count(count) => count,
            Self::Percent(percent) => {
                let all = u64::from(zones) * u64::from(percent);
                u32::try_from(all.div_ceil(100)).unwrap_or(u32::MAX)
            }
        }
    }
}

impl FromStr for FreeZones {
    type Err = WatermarksError;

    fn from_str(text: &str) -> Result<Self, WatermarksError> {
        let (number, is_share) = match text.trim().strip_suffix('%') {
            Some(number) => (number, true),
            None => (text.trim(), false),
        };
        let number = number.parse().map_err(|_| WatermarksError::Unreadable)?;
        match is_share {
            true if number > MAX_PERCENT => Err(WatermarksError::TooMany),
            true => Ok(Self::Percent(number)),
            false => Ok(Self::Count(number)),
        }
    }
}

impl fmt::Display for FreeZones {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// Why a text is no [`Watermarks`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WatermarksError {
    /// Not two numbers.
    #[error("write two numbers of free zones, or per cent of those for data, as 1..2 or 5%..20%")]
    Unreadable,
    /// More than 90 % of the zones: hardly anything could be stored.
    #[error("at most 90% can be kept free")]
    TooMany,
    /// The first number is larger than the second, or the two cannot be compared.
    #[error(
        "the first number is where cleaning is urgent, and not above the second: write both as zones, both as per \
         cent, or the second as per cent"
    )]
    Order,
}

/// The numbers of free zones below which data zones are cleaned in the background. Free zones are not
/// over-provisioning: each one that is kept free makes the cleaner's victims fuller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Watermarks {
    /// Below this number of free zones, zones are cleaned that are dead by more than a quarter.
    pub low: FreeZones,
    /// Below this number, zones are cleaned that are dead by more than a sixteenth.
    pub min: FreeZones,
}

impl Default for Watermarks {
    /// One zone to write to when the open one is full, and one for a victim that takes longer. More would only
    /// let a longer burst pass before writers are slowed to the cleaner's pace.
    fn default() -> Self {
        Self {
            low: FreeZones::Count(2),
            min: FreeZones::Count(1),
        }
    }
}

impl Watermarks {
    /// Cleaning begins when the drive is 80 % full, and is urgent at 95 % (main document § 5.7.1).
    pub const AT_80_PERCENT: Self = Self {
        low: FreeZones::Percent(20),
        min: FreeZones::Percent(5),
    };

    /// Both thresholds as numbers of zones, `min` first, of `all` that data may fill; at most nine tenths of
    /// these.
    pub fn of(self, all: u32) -> (u32, u32) {
        let most = FreeZones::Percent(MAX_PERCENT).of(all).max(2);
        let min = self.min.of(all).min(most);
        (min, self.low.of(all).clamp(min, most))
    }

    /// The pressure to clean at with `free` free zones, of `all` that data may fill; `None` if enough are free.
    pub fn pressure(self, free: u32, all: u32) -> Option<Pressure> {
        self.pressure_before(free, all, 0)
    }

    /// As [`Self::pressure`], for a cleaner that may have to wait while `filled` zones are filled: the
    /// threshold at which cleaning begins is raised by that many zones. The threshold for urgency does not
    /// change.
    pub fn pressure_before(self, free: u32, all: u32, filled: u32) -> Option<Pressure> {
        let (urgent, begin) = self.of(all);
        let begin = begin.saturating_add(filled);
        let supply = Supply {
            free,
            tidy: 0,
            begin,
            urgent,
        };
        supply.pressure(Allowed {
            to_tidy: false,
            ahead: true,
        })
    }
}

impl FromStr for Watermarks {
    type Err = WatermarksError;

    fn from_str(text: &str) -> Result<Self, WatermarksError> {
        let (min, low) = text.split_once("..").ok_or(WatermarksError::Unreadable)?;
        let (min, low): (FreeZones, FreeZones) = (min.parse()?, low.parse()?);
        match (min, low) {
            (FreeZones::Count(min), FreeZones::Count(low))
            | (FreeZones::Percent(min), FreeZones::Percent(low))
                if min > low =>
            {
                Err(WatermarksError::Order)
            }
            (FreeZones::Percent(1..), FreeZones::Count(_)) => Err(WatermarksError::Order),
            _ => Ok(Self { low, min }),
        }
    }
}

/// Writes the form that [`FromStr`] reads.
impl fmt::Display for Watermarks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.min, self.low)
    }
}

crate::written_as_text!(Watermarks);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watermarks_are_zones_or_parts_of_the_drive() {
        let few = |free| Watermarks::default().pressure(free, 10_000);
        assert_eq!(
            [0, 1, 2].map(few),
            [Some(Pressure::Urgent), Some(Pressure::Ahead), None]
        );
        let full = |free| Watermarks::AT_80_PERCENT.pressure(free, 230);
        assert_eq!(
            [11, 12, 45, 46].map(full),
            [
                Some(Pressure::Urgent),
                Some(Pressure::Ahead),
                Some(Pressure::Ahead),
                None
            ]
        );
        let waits = |free| Watermarks::default().pressure_before(free, 10_000, 5);
        assert_eq!(
            [0, 1, 6, 7].map(waits),
            [
                Some(Pressure::Urgent),
                Some(Pressure::Ahead),
                Some(Pressure::Ahead),
                None
            ]
        );
        assert_eq!(FreeZones::Percent(u32::MAX).of(u32::MAX), u32::MAX);
    }

    #[test]
    fn more_than_can_be_free_is_as_much_as_can_be() {
        let of = |text: &str, all| text.parse::<Watermarks>().unwrap().of(all);
        assert_eq!(of("4000..5000", 100), (90, 90));
        assert_eq!(of("40..10%", 100), (40, 40));
        assert_eq!([0, 1, 100].map(|all| of("1..2", all)), [(1, 2); 3]);
    }

    #[test]
    fn watermarks_as_people_write_them() {
        for text in ["1..2", "5%..20%", "4..10%", "0..0"] {
            assert_eq!(text.parse::<Watermarks>().unwrap().to_string(), text);
        }
        assert_eq!("5%..20%".parse(), Ok(Watermarks::AT_80_PERCENT));
        let error = |text: &str| text.parse::<Watermarks>().unwrap_err();
        assert_eq!(error("2..1"), WatermarksError::Order);
        assert_eq!(error("50%..1"), WatermarksError::Order);
        assert_eq!(error("1%..95%"), WatermarksError::TooMany);
        for wrong in ["", "3", "..", "a..b", "-1..2", "1..2..3"] {
            assert_eq!(error(wrong), WatermarksError::Unreadable, "{wrong}");
        }
    }
}
