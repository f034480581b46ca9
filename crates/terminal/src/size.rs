//! Sizes as people write them: `64GiB`, `4K`, `1.5TB`, `4096`.
//!
//! A letter alone and `KiB`, `MiB`, … count in 1024s, `KB`, `MB`, … in 1000s, as drive makers do.
//! Fractions are computed in integers, so that `1.5TB` is exact and `0.1B` is refused.

use std::fmt;
use std::str::FromStr;

/// A number of bytes given on the command line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Size(pub u64);

/// Why a text is no size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SizeError {
    /// No number at the front.
    #[error("write a size as 64GiB, 4K, 1.5TB or a number of bytes")]
    NoNumber,
    /// The unit is not one we know.
    #[error("the unit is none of B, K, KiB, KB, M, MiB, MB, G, GiB, GB, T, TiB, TB")]
    Unit,
    /// Not a whole number of bytes.
    #[error("that is not a whole number of bytes")]
    Fraction,
    /// More than 64 bits.
    #[error("that is more than 16 EiB")]
    TooLarge,
}

impl FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, SizeError> {
        let text = text.trim();
        let split = text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len());
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
            .map(Size)
            .map_err(|_| SizeError::TooLarge)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&human(self.0))
    }
}

/// `bytes` for people: `1.21 GiB`.
pub fn human(bytes: u64) -> String {
    zone::Bytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_as_people_write_them() {
        let bytes = |text: &str| text.parse::<Size>().map(|s| s.0);
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
        assert_eq!(bytes("-4K"), Err(SizeError::Unit));
        assert_eq!(bytes(""), Err(SizeError::NoNumber));
        assert_eq!(bytes("."), Err(SizeError::NoNumber));
        assert_eq!(bytes("1.2.3K"), Err(SizeError::NoNumber));
    }

    proptest! {
        #[test]
        fn any_text_is_a_size_or_an_error(text in "\\PC{0,30}") {
            let _ = text.parse::<Size>();
        }

        #[test]
        fn whole_numbers_come_back(bytes: u64) {
            prop_assert_eq!(bytes.to_string().parse::<Size>(), Ok(Size(bytes)));
        }
    }
}
