//! A version of an object, and the names of earlier versions.

use crate::attributes::VERSION;
use s3s::{S3Result, s3_error};
use store::{Attributes, ObjectInfo};

/// Attribute that makes an earlier version a delete marker.
pub(super) const MARKER: &str = "delete-marker";
/// Id, for clients, of a version that was put while the bucket kept none.
pub const NULL: &str = "null";
/// Ends the key in the name of an earlier version.
pub const END: &str = "\0\0";

/// A version and its order among those of its key: 16 hexadecimal digits, smaller for newer versions, followed by 16
/// random ones or `null`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Version(String);

impl Version {
    const DIGITS: usize = 16;

    pub(super) fn new(number: u64, random: Option<u64>) -> Self {
        let number = !number;
        Self(match random {
            Some(random) => format!("{number:016x}{random:016x}"),
            None => format!("{number:016x}{NULL}"),
        })
    }

    /// Parses a version from an attribute, a name or a client's id.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = |text: &str| {
            let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            text.len() == Self::DIGITS && text.bytes().all(is_digit)
        };
        let (number, rest) = text.split_at_checked(Self::DIGITS)?;
        (digits(number) && (rest == NULL || digits(rest))).then(|| Self(text.to_owned()))
    }

    /// Version of an object with these attributes. Objects put before the bucket kept versions are older than all
    /// others.
    pub fn of(attributes: &Attributes) -> Self {
        let said = attributes.get(VERSION);
        let said = said.and_then(|text| Self::parse(std::str::from_utf8(text).ok()?));
        said.unwrap_or_else(|| Self::new(0, None))
    }

    pub(super) fn number(&self) -> u64 {
        let digits = self.0.get(..Self::DIGITS);
        digits.map_or(0, |digits| {
            !u64::from_str_radix(digits, 16).unwrap_or(u64::MAX)
        })
    }

    /// Whether its number leaves enough for all versions to come. Archives may have any; the server counts from 0.
    pub fn leaves_room(&self) -> bool {
        self.number() < 1 << 63
    }

    /// Whether its id is [`NULL`].
    pub fn is_null(&self) -> bool {
        self.0.ends_with(NULL)
    }

    /// The id that clients use.
    pub fn id(&self) -> &str {
        if self.is_null() { NULL } else { &self.0 }
    }

    /// The id in answers to puts; none for the version `null`.
    pub fn told(self) -> Option<String> {
        (!self.is_null()).then_some(self.0)
    }

    /// The version as stored in attributes and names.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A key as in names of earlier versions, which sort by key and then by version: [`END`] sorts before any character
/// that continues an escaped key.
pub fn escape(key: &str) -> String {
    key.replace('\0', "\0\u{1}")
}

/// [`escape`] of the first bytes of a key.
pub fn escape_bytes(prefix: &[u8]) -> Vec<u8> {
    let pieces: Vec<&[u8]> = prefix.split(|byte| *byte == 0).collect();
    pieces.join(&b"\0\x01"[..])
}

/// Undoes [`escape`].
pub fn unescape(escaped: &str) -> String {
    escaped.replace("\0\u{1}", "\0")
}

/// Name of an earlier version; for the current version, its place among those names.
pub fn name_of(key: &str, version: &Version) -> String {
    format!("{}{END}{}", escape(key), version.0)
}

/// Prefix of the names of all earlier versions of a key.
pub fn stem(key: &str) -> String {
    escape(key) + END
}

/// Key and version of such a name; `None` if the name is not of this form.
pub fn parse_name(name: &str) -> Option<(String, Version)> {
    let (key, version) = name.rsplit_once(END)?;
    Some((unescape(key), Version::parse(version)?))
}

/// Whether an object in `.versions/BUCKET` is a delete marker.
pub fn is_marker(info: &ObjectInfo) -> bool {
    info.attributes.contains_key(MARKER)
}

/// Refuses ids that no version can have.
pub(super) fn check_id(id: &str) -> S3Result<()> {
    let is_one = id == NULL || Version::parse(id).is_some_and(|version| !version.is_null());
    let invalid = || s3_error!(InvalidArgument, "Invalid version id specified");
    is_one.then_some(()).ok_or_else(invalid)
}
