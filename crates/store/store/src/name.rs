//! Names of objects: any bytes. Most are text.

use serde::{Deserialize, Serialize};
use std::fmt::{self, Write};
use std::ops::Deref;

/// Most characters of a name in a message.
const MAX_SHOWN: usize = 200;

/// The name of an object.
///
/// In JSON it is a string if it is UTF-8, and `{"hex": "…"}` otherwise. In messages, bytes that are not printable
/// characters are escaped, and a long name is shortened; `{:#}` shows all of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(from = "Json", into = "Json")]
pub struct Name(Vec<u8>);

/// Form of a [`Name`] in JSON.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Json {
    Text(String),
    Bytes { hex: Hex },
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct Hex(Vec<u8>);

impl Name {
    /// The name as text, if it is UTF-8.
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// The name in hexadecimal digits.
    pub fn hex(&self) -> String {
        let mut digits = String::with_capacity(2 * self.0.len());
        for byte in &self.0 {
            let _ = write!(digits, "{byte:02x}");
        }
        digits
    }

    /// A name from hexadecimal digits, two for each byte; `None` for any other text.
    pub fn from_hex(digits: &str) -> Option<Self> {
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
        let bytes = pairs
            .iter()
            .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
        let bytes: Option<Vec<u8>> = bytes.collect();
        bytes.filter(|_| rest.is_empty()).map(Self)
    }
}

/// Escaped, and shortened if long; in full with `{:#}`.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = if f.alternate() { usize::MAX } else { MAX_SHOWN };
        let mut put = |part: &str| {
            left = left.saturating_sub(part.len());
            match left {
                0 => false,
                _ => f.write_str(part).is_ok(),
            }
        };
        for chunk in self.0.utf8_chunks() {
            let characters = chunk.valid().chars();
            let characters = characters.map(|c| c.escape_debug().to_string());
            let bytes = chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}"));
            if !characters.chain(bytes).all(|part| put(&part)) {
                return write!(f, "… ({} bytes)", self.0.len());
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl Deref for Name {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Name {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl<T: AsRef<[u8]> + ?Sized> From<&T> for Name {
    fn from(name: &T) -> Self {
        Self(name.as_ref().to_vec())
    }
}

impl From<String> for Name {
    fn from(name: String) -> Self {
        Self(name.into_bytes())
    }
}

impl From<Json> for Name {
    fn from(json: Json) -> Self {
        match json {
            Json::Text(text) => text.into(),
            Json::Bytes { hex: Hex(bytes) } => Self(bytes),
        }
    }
}

impl From<Name> for Json {
    fn from(Name(bytes): Name) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Bytes {
                hex: Hex(error.into_bytes()),
            },
        }
    }
}

impl TryFrom<String> for Hex {
    type Error = &'static str;

    fn try_from(digits: String) -> Result<Self, Self::Error> {
        let name = Name::from_hex(&digits).ok_or("two hexadecimal digits for each byte")?;
        Ok(Self(name.0))
    }
}

impl From<Hex> for String {
    fn from(Hex(bytes): Hex) -> Self {
        Name(bytes).hex()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_printed_is_escaped_and_a_long_name_shortened() {
        let shown = |name: &[u8]| Name::from(name).to_string();
        assert_eq!(shown("a/ü".as_bytes()), "a/ü");
        assert_eq!(shown(b"a\xff\n\0\xc3"), "a\\xff\\n\\0\\xc3");
        assert_eq!(format!("{:?}", Name::from("a")), "\"a\"");
        let long = shown(&[b'x'; 4096]);
        assert!(long.len() < 220 && long.ends_with("… (4096 bytes)"));
        assert_eq!(shown(&[0xff; 4096]).matches("xff").count(), 49);
        assert_eq!(format!("{:#}", Name::from(&[b'x'; 4096])).len(), 4096);
    }

    #[test]
    fn every_name_survives_hexadecimal_digits() {
        let all: Vec<u8> = (0..=255).collect();
        let name = Name::from(&all);
        assert_eq!(Name::from_hex(&name.hex()), Some(name.clone()));
        assert_eq!((name.text(), Name::from("ü").text()), (None, Some("ü")));
        for bad in ["0", "0g", "ü", "+1"] {
            assert_eq!(Name::from_hex(bad), None, "{bad}");
        }
    }
}
