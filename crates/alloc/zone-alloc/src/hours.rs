//! Hours of the day in which the background cleaner may do work that is not urgent.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A daily period from one minute of the day up to another, across midnight if the end is the smaller one, and
/// all day if both are the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hours {
    from: u16,
    to: u16,
}

/// The text is not a valid [`Hours`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("write always, or two different times of the day as 22:00-06:00")]
pub struct HoursError;

impl Hours {
    /// All day.
    pub const ALWAYS: Self = Self { from: 0, to: 0 };

    /// Whether the period is the whole day.
    pub const fn is_always(self) -> bool {
        self.from == self.to
    }

    /// Whether `minute`, counted from midnight, is in the period.
    pub const fn contains(self, minute: u16) -> bool {
        if self.from < self.to {
            self.from <= minute && minute < self.to
        } else {
            self.is_always() || self.from <= minute || minute < self.to
        }
    }
}

fn minute(text: &str) -> Option<u16> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let number = |text: &str, below: u16| -> Option<u16> {
        let is_number = text.len() <= 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|number| *number < below);
        number.filter(|_| is_number)
    };
    Some(number(hours, 24)? * 60 + number(minutes, 60)?)
}

impl FromStr for Hours {
    type Err = HoursError;

    fn from_str(text: &str) -> Result<Self, HoursError> {
        if text.trim() == "always" {
            return Ok(Self::ALWAYS);
        }
        let (from, to) = text.split_once('-').ok_or(HoursError)?;
        let hours = minute(from).zip(minute(to));
        let (from, to) = hours.filter(|(from, to)| from != to).ok_or(HoursError)?;
        Ok(Self { from, to })
    }
}

/// Writes the form that [`FromStr`] reads.
impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_always() {
            return f.write_str("always");
        }
        let (from, to) = (self.from, self.to);
        let [a, b, c, d] = [from / 60, from % 60, to / 60, to % 60];
        write!(f, "{a:02}:{b:02}-{c:02}:{d:02}")
    }
}

crate::written_as_text!(Hours);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_over_midnight_are_those_of_two_days() {
        let hours: Hours = "22:00-06:30".parse().unwrap();
        let inside = [22 * 60, 23 * 60 + 59, 0, 6 * 60 + 29];
        let outside = [6 * 60 + 30, 12 * 60, 21 * 60 + 59];
        assert!(inside.iter().all(|minute| hours.contains(*minute)));
        assert!(outside.iter().all(|minute| !hours.contains(*minute)));
        let hours: Hours = "9:00-17:00".parse().unwrap();
        assert_eq!(
            [8 * 60 + 59, 9 * 60, 17 * 60].map(|m| hours.contains(m)),
            [false, true, false]
        );
        assert!((0..24 * 60).all(|minute| Hours::ALWAYS.contains(minute)));
    }

    #[test]
    fn hours_as_people_write_them() {
        for text in ["always", "22:00-06:30", "00:00-23:59"] {
            assert_eq!(text.parse::<Hours>().unwrap().to_string(), text);
        }
        for wrong in [
            "",
            "22-6",
            "24:00-06:00",
            "22:00",
            "22:60-06:00",
            "06:00-06:00",
            "+1:00-2:00",
        ] {
            assert_eq!(wrong.parse::<Hours>(), Err(HoursError), "{wrong}");
        }
    }
}
