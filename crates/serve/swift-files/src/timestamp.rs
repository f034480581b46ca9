//! Timestamps of changes, in Swift's form (`swift.common.utils.timestamp`).

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Units of 10 µs in a second.
const TICKS: u64 = 100_000;
/// Swift writes ten digits of seconds.
const MOST_TICKS: u64 = 10_000_000_000 * TICKS - 1;

/// A time in units of 10 µs since 1970, and an offset that orders changes of the same time. Ordered by both.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp {
    ticks: u64,
    offset: u64,
}

/// Why a text is no timestamp.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "{text:?} is no timestamp: it looks like 1402464677.04188 or 1402464677.04188_0000000000000001"
)]
pub struct TimestampError {
    text: String,
}

impl Timestamp {
    /// A time in units of 10 µs since 1970; `None` after the year 2286.
    pub const fn new(ticks: u64, offset: u64) -> Option<Self> {
        if ticks > MOST_TICKS {
            return None;
        }
        Some(Self { ticks, offset })
    }

    /// Units of 10 µs since 1970.
    pub const fn ticks(self) -> u64 {
        self.ticks
    }

    /// The time as clients see it, without the offset.
    pub fn normal(self) -> String {
        format!("{:010}.{:05}", self.ticks / TICKS, self.ticks % TICKS)
    }

    /// Time and offset, with as many digits of offset as needed, as in names of `.meta` files.
    pub(crate) fn short(self) -> String {
        match self.offset {
            0 => self.normal(),
            offset => format!("{}_{offset:x}", self.normal()),
        }
    }

    /// This time moved by `by` units, without an offset; unchanged, with its offset, if `by` is 0.
    pub(crate) fn moved(self, by: i64) -> Option<Self> {
        match by {
            0 => Some(self),
            by => Self::new(self.ticks.checked_add_signed(by)?, 0),
        }
    }
}

/// The form in file names and hashes: with 16 digits of offset if it is not 0.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.normal())?;
        match self.offset {
            0 => Ok(()),
            offset => write!(f, "_{offset:016x}"),
        }
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    /// Ten digits of seconds, five after the point, up to 16 hexadecimal digits of offset.
    fn from_str(text: &str) -> Result<Self, TimestampError> {
        parse(text).ok_or_else(|| TimestampError {
            text: text.chars().take(64).collect(),
        })
    }
}

fn parse(text: &str) -> Option<Timestamp> {
    let (moment, offset) = match text.split_once('_') {
        Some((moment, offset)) => (moment, hexadecimal(offset)?),
        None => (text, 0),
    };
    let (seconds, fraction) = moment.split_once('.')?;
    let digits = |text: &str, count| {
        let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u64>().ok()).flatten()
    };
    Timestamp::new(digits(seconds, 10)? * TICKS + digits(fraction, 5)?, offset)
}

/// Parses up to 16 lower-case hexadecimal digits.
pub(crate) fn hexadecimal(text: &str) -> Option<u64> {
    let is_number = text
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (is_number && text.len() <= 16)
        .then(|| u64::from_str_radix(text, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        for text in [
            "1402464677.04188",
            "0000000000.00000",
            "9999999999.99999_ffffffffffffffff",
        ] {
            assert_eq!(text.parse::<Timestamp>().unwrap().to_string(), text);
        }
        let short: Timestamp = "1402464677.04188_1".parse().unwrap();
        assert_eq!(short.to_string(), "1402464677.04188_0000000000000001");
        assert_eq!(short.short(), "1402464677.04188_1");
        assert_eq!(short.normal(), "1402464677.04188");
    }

    #[test]
    fn order_is_that_of_the_texts() {
        let texts = [
            "1402464677.04188",
            "1402464677.04188_0000000000000002",
            "1402464677.04189",
            "1402464678.00000",
        ];
        let times: Vec<Timestamp> = texts.iter().map(|text| text.parse().unwrap()).collect();
        assert!(times.is_sorted());
    }

    #[test]
    fn what_is_none() {
        for text in [
            "",
            "1",
            "1402464677",
            "1402464677.",
            "1402464677.0418",
            "402464677.04188",
            "+402464677.04188",
            "1402464677.04188_",
            "1402464677.04188_g",
            "1402464677.04188_1_1",
            "1402464677.04188_00000000000000000",
            "1402464677.04188_A",
            "é402464677.04188",
            "nan",
        ] {
            assert!(text.parse::<Timestamp>().is_err(), "{text}");
        }
    }

    #[test]
    fn moved() {
        let time: Timestamp = "1402464677.04188_7".parse().unwrap();
        assert_eq!(time.moved(0), Some(time));
        assert_eq!(time.moved(-4188).unwrap().to_string(), "1402464677.00000");
        assert_eq!(time.moved(i64::MIN), None);
        assert_eq!(time.moved(i64::MAX), None);
    }
}
