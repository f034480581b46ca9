//! Conversions between Unix time in microseconds, as in the store, and the dates of S3.

use s3s::dto::{Timestamp, TimestampFormat};
use std::time::{Duration, SystemTime};
use time::OffsetDateTime;

/// Microseconds of a day.
pub const MICROS_PER_DAY: u64 = 24 * 60 * 60 * 1_000_000;
/// The last time that S3 can write, in whole milliseconds: the end of the year 9999. Unix time in microseconds.
pub const LAST_MICROS: u64 = 253_402_300_799_999_000;

/// The date of a Unix time in microseconds, at most [`LAST_MICROS`].
pub fn timestamp(micros: u64) -> Timestamp {
    Timestamp::from(SystemTime::UNIX_EPOCH + Duration::from_micros(micros.min(LAST_MICROS)))
}

/// Unix time in microseconds of a date; `None` before 1970.
pub fn micros(date: &Timestamp) -> Option<u64> {
    let nanos = OffsetDateTime::from(date.clone()).unix_timestamp_nanos();
    // Rounded up: a time within a microsecond has not passed before the end of that microsecond.
    u64::try_from((nanos + 999).div_euclid(1000)).ok()
}

/// Formats a date for HTTP headers.
pub fn format_date(date: &Timestamp) -> Option<String> {
    format(date, TimestampFormat::HttpDate)
}

/// Parses a date from an HTTP header.
pub fn parse_date(text: &str) -> Option<Timestamp> {
    Timestamp::parse(TimestampFormat::HttpDate, text).ok()
}

/// Formats a date for S3's documents: RFC 3339 in UTC, with milliseconds.
pub fn format_time(date: &Timestamp) -> Option<String> {
    format(date, TimestampFormat::DateTime)
}

/// Parses a date from an S3 document.
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
