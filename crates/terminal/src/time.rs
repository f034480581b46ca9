//! Times in UTC and durations, for people.

use ::time::OffsetDateTime;
use ::time::format_description::BorrowedFormatItem;
use ::time::macros::format_description;
use std::str::FromStr;

const SHOWN: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day] [hour]:[minute]:[second]");

/// A Unix time in microseconds as `2016-03-01 12:34:56`; in seconds if it is outside of the calendar.
pub fn utc(micros: u64) -> String {
    let seconds = micros / 1_000_000;
    let time = OffsetDateTime::from_unix_timestamp(seconds.cast_signed()).ok();
    let shown = time.and_then(|time| time.format(SHOWN).ok());
    shown.unwrap_or_else(|| format!("{seconds} s after 1970"))
}

/// A duration of the command line, in seconds: `90s`, `30min`, `12h`, `1d`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Duration(pub u64);

impl FromStr for Duration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let length = humantime::parse_duration(text)
            .map_err(|error| format!("{error}; write 90s, 30min, 12h or 1d"))?;
        if length.subsec_nanos() != 0 {
            return Err("write whole seconds: 90s, 30min, 12h or 1d".to_owned());
        }
        match length.as_secs() {
            seconds if seconds < 1 << 32 => Ok(Self(seconds)),
            _ => Err("that is more than a century".to_owned()),
        }
    }
}

/// A duration for people: `40 s`, `12 min`, `3.5 h`.
pub fn length(seconds: f64) -> String {
    if seconds < 100.0 {
        format!("{seconds:.0} s")
    } else if seconds < 6_000.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{:.1} h", seconds / 3_600.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_as_people_write_them() {
        let seconds = |text: &str| text.parse::<Duration>().map(|length| length.0);
        assert_eq!(seconds("90s"), Ok(90));
        assert_eq!(seconds("30 min"), Ok(1_800));
        assert_eq!(seconds("2m"), Ok(120));
        assert_eq!(seconds("12h"), Ok(43_200));
        assert_eq!(seconds("1d"), Ok(86_400));
        assert_eq!(seconds("1h 30m"), Ok(5_400));
        for wrong in ["", "5", "1ms", "1500ms", "h", "-1h", "99999999999d", "1x"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            (length(40.0), length(720.0)),
            ("40 s".into(), "12 min".into())
        );
        assert_eq!(length(12_600.0), "3.5 h");
    }

    #[test]
    fn times_that_are_known() {
        assert_eq!(utc(0), "1970-01-01 00:00:00");
        assert_eq!(utc(951_782_400_000_000), "2000-02-29 00:00:00");
        assert_eq!(utc(951_868_799_999_999), "2000-02-29 23:59:59");
        assert_eq!(utc(1_456_835_696_000_000), "2016-03-01 12:34:56");
        assert_eq!(utc(4_107_542_400_000_000), "2100-03-01 00:00:00");
        // The largest time there is has no date.
        assert_eq!(utc(u64::MAX), "18446744073709 s after 1970");
    }
}
