//! Times for people, in UTC, and lengths of time as they write them.

use std::str::FromStr;

/// A Unix time in microseconds as `2016-03-01 12:34:56`.
pub fn utc(micros: u64) -> String {
    let seconds = micros / 1_000_000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Civil date from a day count, in eras of 400 years that begin on 1 March.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}",
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

/// A length of time given on the command line, in seconds: `90s`, `30min`, `12h`, `1d`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Duration(pub u64);

impl FromStr for Duration {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let split = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let seconds = match unit.trim_start() {
            "s" => 1,
            "m" | "min" => 60,
            "h" => 3_600,
            "d" => 86_400,
            _ => return Err("write 90s, 30min, 12h or 1d"),
        };
        let number: u64 = number.parse().map_err(|_| "write 90s, 30min, 12h or 1d")?;
        let all = number.checked_mul(seconds).filter(|all| *all < 1 << 32);
        all.map(Self).ok_or("that is more than a century")
    }
}

/// Seconds for people: `40 s`, `12 min`, `3.5 h`.
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
        for wrong in ["", "5", "h", "1.5h", "-1h", "99999999999d", "1w"] {
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
        // The largest time there is does not overflow.
        assert!(utc(u64::MAX).starts_with("586"));
    }
}
