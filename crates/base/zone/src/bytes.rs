//! Numbers of bytes for people.

use std::fmt;

/// A number of bytes that prints with at most four digits and a binary unit: `1.21 GiB`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        // The largest unit of which there is at least one, after rounding to three digits.
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        while value >= 999.5 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        let decimals = match value {
            v if v.fract() == 0.0 || v >= 99.95 => 0,
            v if v >= 9.995 => 1,
            _ => 2,
        };
        write!(f, "{value:.decimals$} {}", UNITS[unit])
    }
}

/// `1 zone`, `2 zones`.
pub fn count(number: u64, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_for_people() {
        let human = |bytes| Bytes(bytes).to_string();
        assert_eq!(human(0), "0 B");
        assert_eq!(human(1023), "1023 B");
        assert_eq!(human(1024), "1 KiB");
        assert_eq!(human(64 << 30), "64 GiB");
        assert_eq!(human(1_300_000_000), "1.21 GiB");
        assert_eq!(human(123_456_789), "118 MiB");
        assert_eq!(human((1 << 30) - 1), "1.00 GiB");
        assert_eq!(human(u64::MAX), "16 EiB");
    }
}
