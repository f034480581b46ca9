//! Unix time in microseconds, as the store has it, and dates, as S3 writes them.

use s3s::dto::{Timestamp, TimestampFormat};
use std::time::{Duration, SystemTime};
use time::OffsetDateTime;

/// What a calendar's day has.
pub const MICROS_PER_DAY: u64 = 24 * 60 * 60 * 1_000_000;
/// The last moment that S3 can write, in milliseconds as it does: the end of the year 9999.
pub const LAST_MICROS: u64 = 253_402_300_799_999_000;

/// The date of a moment; of one that no calendar has, the last that it does have.
pub fn timestamp(micros: u64) -> Timestamp {
    Timestamp::from(SystemTime::UNIX_EPOCH + Duration::from_micros(micros.min(LAST_MICROS)))
}

/// The moment of a date; `None` before 1970.
pub fn micros(date: &Timestamp) -> Option<u64> {
    let nanos = OffsetDateTime::from(date.clone()).unix_timestamp_nanos();
    // What is in the middle of a microsecond is not over before its end.
    u64::try_from((nanos + 999).div_euclid(1000)).ok()
}

/// A date as HTTP's headers have it.
pub fn format_date(date: &Timestamp) -> Option<String> {
    format(date, TimestampFormat::HttpDate)
}

/// The other way.
pub fn parse_date(text: &str) -> Option<Timestamp> {
    Timestamp::parse(TimestampFormat::HttpDate, text).ok()
}

/// A date as S3's documents have it: RFC 3339 in UTC, with milliseconds.
pub fn format_time(date: &Timestamp) -> Option<String> {
    format(date, TimestampFormat::DateTime)
}

/// The other way.
pub fn parse_time(text: &str) -> Option<Timestamp> {
    Timestamp::parse(TimestampFormat::DateTime, text).ok()
}

fn format(date: &Timestamp, format: TimestampFormat) -> Option<String> {
    let mut text = Vec::new();
    date.format(format, &mut text).ok()?;
    String::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_go_both_ways() {
        let text = "Wed, 21 Oct 2015 07:28:00 GMT";
        assert_eq!(format_date(&parse_date(text).unwrap()).unwrap(), text);
        assert_eq!(parse_date("tomorrow"), None);
    }
}
