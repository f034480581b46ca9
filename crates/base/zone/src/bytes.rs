//! Sizes in bytes in the forms that people write and read: `64GiB`, `4K`, `1.5TB`, `4096`.

use std::fmt;
use std::str::FromStr;

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

/// Why a text is not a size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SizeError {
    /// The text does not begin with a number.
    #[error("write a size as 64GiB, 4K, 1.5TB or a number of bytes")]
    NoNumber,
    /// The unit is not one of those below.
    #[error("the unit is none of B, K, KiB, KB, M, MiB, MB, G, GiB, GB, T, TiB, TB")]
    Unit,
    /// Not a whole number of bytes.
    #[error("that is not a whole number of bytes")]
    Fraction,
    /// More than 64 bits.
    #[error("that is more than 16 EiB")]
    TooLarge,
}

/// A letter alone and `KiB`, `MiB`, … count in 1024s, `KB`, `MB`, … in 1000s, as drive makers do. Fractions are
/// computed in integers, so that `1.5TB` is exact and `0.1B` is refused.
impl FromStr for Bytes {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let text = text.trim();
        let split = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
        if split == 0 {
            return Err(SizeError::NoNumber);
        }
        let (number, unit) = text.split_at(split);
        let unit: u128 = match unit.trim_start().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kib" => 1 << 10,
            "m" | "mib" => 1 << 20,
            "g" | "gib" => 1 << 30,
            "t" | "tib" => 1 << 40,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000,
            _ => return Err(SizeError::Unit),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return Err(SizeError::NoNumber);
        }
        // At most 18 digits on either side keep the product below 2^128.
        if whole.trim_start_matches('0').len() > 20 {
            return Err(SizeError::TooLarge);
        }
        let fraction = fraction.trim_end_matches('0');
        if fraction.len() > 18 {
            return Err(SizeError::Fraction);
        }
        let digits = |text: &str| {
            if text.is_empty() {
                Ok(0)
            } else {
                text.parse::<u128>()
            }
        };
        let whole = digits(whole).map_err(|_| SizeError::NoNumber)?;
        let parts = digits(fraction).map_err(|_| SizeError::NoNumber)? * unit;
        let scale = 10u128.pow(fraction.len() as u32);
        if !parts.is_multiple_of(scale) {
            return Err(SizeError::Fraction);
        }
        u64::try_from(whole * unit + parts / scale)
            .map(Bytes)
            .map_err(|_| SizeError::TooLarge)
    }
}

/// `number` with the noun `one` in singular or plural: `1 zone`, `2 zones`.
pub fn count(number: u64, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    #[test]
    fn sizes_as_people_write_them() {
        let bytes = |text: &str| text.parse::<Bytes>().map(|s| s.0);
        assert_eq!(bytes("4096"), Ok(4096));
        assert_eq!(bytes("4K"), Ok(4096));
        assert_eq!(bytes("64GiB"), Ok(64 << 30));
        assert_eq!(bytes("64 gib"), Ok(64 << 30));
        assert_eq!(bytes("1.5TB"), Ok(1_500_000_000_000));
        assert_eq!(bytes("0.5k"), Ok(512));
        assert_eq!(bytes("1.50M"), Ok(3 << 19));
        assert_eq!(bytes("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(bytes("18446744073709551616"), Err(SizeError::TooLarge));
        assert_eq!(bytes("99999999999999999999T"), Err(SizeError::TooLarge));
        assert_eq!(bytes("0.3K"), Err(SizeError::Fraction));
        assert_eq!(bytes("4X"), Err(SizeError::Unit));
        assert_eq!(bytes("-4K"), Err(SizeError::NoNumber));
        assert_eq!(bytes(""), Err(SizeError::NoNumber));
        assert_eq!(bytes("."), Err(SizeError::NoNumber));
        assert_eq!(bytes("1.2.3K"), Err(SizeError::NoNumber));
    }

    proptest! {
        #[test]
        fn any_text_is_a_size_or_an_error(text in "\\PC{0,30}") {
            let _ = text.parse::<Bytes>();
        }

        #[test]
        fn whole_numbers_come_back(bytes: u64) {
            prop_assert_eq!(bytes.to_string().parse::<Bytes>(), Ok(Bytes(bytes)));
        }
    }
}
