//! Checksums: XXH3-128, as 32 hexadecimal digits.

use serde::{Deserialize, Serialize};
use std::fmt;

/// XXH3-128 of bytes of an archive; 32 hexadecimal digits as text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sum(pub u128);

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl From<Sum> for String {
    fn from(sum: Sum) -> Self {
        sum.to_string()
    }
}

impl TryFrom<String> for Sum {
    type Error = &'static str;

    fn try_from(digits: String) -> Result<Self, Self::Error> {
        let is_sum = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = u128::from_str_radix(&digits, 16).ok();
        number
            .filter(|_| is_sum)
            .map(Self)
            .ok_or("a checksum has 32 hexadecimal digits")
    }
}
