//! Names of an object's files, which hold a timestamp and the kind of the file.

use crate::timestamp::{Timestamp, hexadecimal};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A file of an object; its name is all that Swift needs to know of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileName {
    /// Timestamp of the request that created the file.
    pub timestamp: Timestamp,
    /// Content of the file.
    pub kind: Kind,
}

/// Content of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// The object of a replication policy: `T.data`.
    Data,
    /// A fragment of an erasure-coded object: `T#2.data`, or `T#2#d.data` once it is durable, which is when enough
    /// nodes have theirs.
    Fragment {
        /// Index of the fragment, from 0.
        index: u32,
        /// Whether the fragment was committed.
        is_durable: bool,
    },
    /// The metadata of a POST: `T.meta`, or `T+x.meta`.
    Meta {
        /// Timestamp of the content type, if one was given. The name stores only its distance from the file's
        /// timestamp, without an offset: a content type of the same time has the file's offset, others have none.
        content_type: Option<Timestamp>,
    },
    /// The object is deleted: `T.ts`.
    Tombstone,
}

impl Kind {
    /// Whether the file has data besides metadata.
    pub const fn has_data(self) -> bool {
        matches!(self, Self::Data | Self::Fragment { .. })
    }

    /// The extension, with its dot.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Data | Self::Fragment { .. } => ".data",
            Self::Meta { .. } => ".meta",
            Self::Tombstone => ".ts",
        }
    }
}

/// Why a text names no file of an object.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "{name:?} names no file of an object: it has a timestamp and ends with .data, .meta or .ts"
)]
pub struct FileNameError {
    name: String,
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = self.timestamp;
        match self.kind {
            Kind::Data | Kind::Tombstone | Kind::Meta { content_type: None } => {
                write!(f, "{time}")?
            }
            Kind::Fragment { index, is_durable } => {
                write!(f, "{time}#{index}{}", if is_durable { "#d" } else { "" })?;
            }
            Kind::Meta {
                content_type: Some(content_type),
            } => {
                let (sign, by) = match content_type.ticks().checked_sub(time.ticks()) {
                    Some(later) => ('+', later),
                    None => ('-', time.ticks() - content_type.ticks()),
                };
                write!(f, "{}{sign}{by:x}", time.short())?;
            }
        }
        f.write_str(self.kind.extension())
    }
}

impl FromStr for FileName {
    type Err = FileNameError;

    fn from_str(name: &str) -> Result<Self, FileNameError> {
        parse(name).ok_or_else(|| FileNameError {
            name: name.chars().take(80).collect(),
        })
    }
}

fn parse(name: &str) -> Option<FileName> {
    let (stem, extension) = name.rsplit_once('.')?;
    match extension {
        "ts" => Some(FileName {
            timestamp: stem.parse().ok()?,
            kind: Kind::Tombstone,
        }),
        "meta" => meta(stem),
        "data" => match stem.split_once('#') {
            None => Some(FileName {
                timestamp: stem.parse().ok()?,
                kind: Kind::Data,
            }),
            Some((time, fragment)) => {
                let (digits, is_durable) = match fragment.strip_suffix("#d") {
                    Some(digits) => (digits, true),
                    None => (fragment, false),
                };
                let index: u32 = digits.parse().ok()?;
                // A fragment has one name only: no sign and no leading zeros.
                (index.to_string() == digits).then_some(())?;
                Some(FileName {
                    timestamp: time.parse().ok()?,
                    kind: Kind::Fragment { index, is_durable },
                })
            }
        },
        _ => None,
    }
}

fn meta(stem: &str) -> Option<FileName> {
    let Some(at) = stem.find(['+', '-']) else {
        return Some(FileName {
            timestamp: stem.parse().ok()?,
            kind: Kind::Meta { content_type: None },
        });
    };
    let timestamp: Timestamp = stem[..at].parse().ok()?;
    let digits = &stem[at + 1..];
    let by = i64::try_from(hexadecimal(digits).filter(|_| !digits.is_empty())?).ok()?;
    let content_type = timestamp.moved(if stem[at..].starts_with('-') { -by } else { by })?;
    Some(FileName {
        timestamp,
        kind: Kind::Meta {
            content_type: Some(content_type),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        for name in [
            "1402464677.04188.data",
            "1402464677.04188_0000000000000001.ts",
            "1402464677.04188.meta",
            "1402464677.04188#0.data",
            "1402464677.04188#13#d.data",
            "1402464677.04188+0.meta",
            "1402464677.04188-1f.meta",
            "1402464677.04188_7+3e8.meta",
        ] {
            assert_eq!(name.parse::<FileName>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn what_is_none() {
        for name in [
            "",
            "a",
            ".data",
            "1402464677.04188",
            "1402464677.04188.durable",
            "1402464677.04188#.data",
            "1402464677.04188#-1.data",
            "1402464677.04188#01.data",
            "1402464677.04188#1#x.data",
            "1402464677.04188#1#d#d.data",
            "1402464677.04188+.meta",
            "1402464677.04188+0+0.meta",
            "1402464677.04188-fffffffffffffff.meta",
            "1402464677.04188+ffffffffffffffff.meta",
            "1402464677.04188+0.data",
            "é.meta",
        ] {
            assert!(name.parse::<FileName>().is_err(), "{name}");
        }
    }

    proptest::proptest! {
        #[test]
        fn bytes_from_outside(name in "\\PC{0,40}") {
            if let Ok(parsed) = name.parse::<FileName>() {
                proptest::prop_assert_eq!(parsed.to_string().parse::<FileName>(), Ok(parsed));
            }
        }
    }
}
