//! Rights of keys. Pure: rights, an operation's need and the buckets in; allowed or not out.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A right in a bucket. None of them includes another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Right {
    /// Read objects and their metadata; also as sources of copies.
    Read,
    /// Put, copy to, and remove objects, whole or in parts.
    Write,
    /// List objects and unfinished uploads.
    List,
    /// Create and remove the bucket, configure versioning, lifecycle and locks, and weaken locks.
    Admin,
}

/// Names of rights in a configuration.
const NAMES: [(&str, Right); 4] = [
    ("read", Right::Read),
    ("write", Right::Write),
    ("list", Right::List),
    ("admin", Right::Admin),
];

impl FromStr for Right {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = NAMES.iter().find(|(name, _)| *name == text);
        found
            .map(|(_, right)| *right)
            .ok_or("a right is one of read, write, list and admin")
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(_, right)| right == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

/// Rights that an operation needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// Any key: the answer shows only what the key may see.
    Key,
    /// Any right in the bucket.
    Any,
    /// This right in the bucket.
    One(Right),
}

/// Buckets by name: one bucket, or with a star at the end all whose names begin with the rest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Buckets {
    start: String,
    is_prefix: bool,
}

impl Buckets {
    fn have(&self, bucket: &str) -> bool {
        match self.is_prefix {
            true => bucket.starts_with(&self.start),
            false => bucket == self.start,
        }
    }
}

impl FromStr for Buckets {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let start = text.strip_suffix('*');
        let (start, is_prefix) = (start.unwrap_or(text), start.is_some());
        let is_known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c);
        if text.is_empty() || !start.chars().all(is_known) {
            return Err("a bucket's name is meant, or its beginning and a star: photos, logs-*, *");
        }
        let start = start.to_owned();
        Ok(Self { start, is_prefix })
    }
}

impl fmt::Display for Buckets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.start, if self.is_prefix { "*" } else { "" })
    }
}

/// Rights on some buckets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grant {
    /// The buckets.
    pub buckets: Buckets,
    /// The rights in them.
    pub may: BTreeSet<Right>,
}

/// All rights of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rights {
    /// All rights in all buckets.
    Admin,
    /// Only those granted.
    Granted(Vec<Grant>),
}

impl Rights {
    /// Whether an operation with this `need` is allowed. `bucket` is the bucket that it is about, if any, and
    /// `source` the bucket that a copy reads, if it is a copy.
    pub fn allow(&self, need: Need, bucket: Option<&str>, source: Option<&str>) -> bool {
        self.meet(need, bucket) && source.is_none_or(|from| self.have(Right::Read, from))
    }

    fn meet(&self, need: Need, bucket: Option<&str>) -> bool {
        match (need, bucket) {
            (Need::Key, _) => true,
            (Need::Any, Some(bucket)) => self.see(bucket),
            (Need::One(right), Some(bucket)) => self.have(right, bucket),
            (Need::Any | Need::One(_), None) => *self == Self::Admin,
        }
    }

    /// Whether the key has any right in the bucket, and so may know that it exists.
    pub fn see(&self, bucket: &str) -> bool {
        self.granted(bucket, |may| !may.is_empty())
    }

    fn have(&self, right: Right, bucket: &str) -> bool {
        self.granted(bucket, |may| may.contains(&right))
    }

    fn granted(&self, bucket: &str, is_enough: impl Fn(&BTreeSet<Right>) -> bool) -> bool {
        match self {
            Self::Admin => true,
            Self::Granted(grants) => grants
                .iter()
                .any(|grant| grant.buckets.have(bucket) && is_enough(&grant.may)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(grants: &[(&str, &[Right])]) -> Rights {
        let grant = |(buckets, may): &(&str, &[Right])| Grant {
            buckets: buckets.parse().unwrap(),
            may: may.iter().copied().collect(),
        };
        Rights::Granted(grants.iter().map(grant).collect())
    }

    #[test]
    fn only_what_is_granted_is_allowed() {
        use Right::*;
        let rights = granted(&[("photos", &[Read, List]), ("logs-*", &[Write])]);
        for (right, photos, logs) in [
            (Read, true, false),
            (List, true, false),
            (Write, false, true),
            (Admin, false, false),
        ] {
            let one = |bucket| rights.allow(Need::One(right), Some(bucket), None);
            assert_eq!((one("photos"), one("logs-7")), (photos, logs), "{right}");
            assert!(!one("photos2") && !one("logs") && !one("other"));
            assert!(!rights.allow(Need::One(right), None, None));
            assert!(Rights::Admin.allow(Need::One(right), Some("other"), Some("third")));
        }
        assert!(rights.see("photos") && rights.see("logs-7") && !rights.see("other"));
        assert!(rights.allow(Need::Key, None, None) && !rights.allow(Need::Any, None, None));
        assert!(!granted(&[("b", &[])]).allow(Need::Any, Some("b"), None));
    }

    #[test]
    fn a_copy_reads_its_source() {
        let rights = granted(&[("from", &[Right::Read]), ("to", &[Right::Write])]);
        let copy = |from, to| rights.allow(Need::One(Right::Write), Some(to), Some(from));
        assert!(copy("from", "to"));
        assert!(!copy("to", "to") && !copy("from", "from") && !copy("other", "to"));
    }

    #[test]
    fn names_of_rights_and_buckets_are_read_as_they_are_written() {
        for (name, right) in NAMES {
            assert_eq!((name.parse(), right.to_string()), (Ok(right), name.into()));
        }
        assert!("Read".parse::<Right>().is_err());
        for text in ["photos", "logs-*", "*"] {
            assert_eq!(text.parse::<Buckets>().unwrap().to_string(), text);
        }
        for text in ["", "a*b", "**", "Photos", "a/b", ".uploads/b"] {
            assert!(text.parse::<Buckets>().is_err(), "{text}");
        }
    }
}
