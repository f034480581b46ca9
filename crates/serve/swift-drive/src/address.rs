//! Addresses of objects: policy, partition, suffix, hash.

use std::fmt;
use std::str::FromStr;
use swift_files::FileName;

/// The MD5 of an object's path with the cluster's prefix and suffix, as Swift makes it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectHash([u8; 16]);

/// The last three hexadecimal digits of a hash: Swift's unit of comparing replicas.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Suffix(u16);

/// Address of an object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address {
    /// Index of the storage policy.
    pub policy: u32,
    /// Partition in the policy's ring.
    pub partition: u32,
    /// Hash of the object's path.
    pub hash: ObjectHash,
}

impl ObjectHash {
    /// A hash of these bytes.
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The suffix that the object belongs to.
    pub const fn suffix(self) -> Suffix {
        Suffix(u16::from_be_bytes([self.0[14], self.0[15]]) & 0xfff)
    }
}

impl Suffix {
    /// Value of the digits, below 4,096.
    pub const fn number(self) -> u32 {
        self.0 as u32
    }
}

impl fmt::Display for ObjectHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for ObjectHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Suffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:03x}", self.0)
    }
}

impl fmt::Debug for Suffix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn is_hexadecimal(text: &str, digits: usize) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.len() == digits && text.bytes().all(is_digit)
}

impl FromStr for ObjectHash {
    type Err = ();

    /// 32 lower-case hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, ()> {
        let number = is_hexadecimal(text, 32).then(|| u128::from_str_radix(text, 16).ok());
        Ok(Self(number.flatten().ok_or(())?.to_be_bytes()))
    }
}

impl FromStr for Suffix {
    type Err = ();

    /// Three lower-case hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, ()> {
        let number = is_hexadecimal(text, 3).then(|| u16::from_str_radix(text, 16).ok());
        Ok(Self(number.flatten().ok_or(())?))
    }
}

impl Address {
    /// The collection of a policy's files.
    pub(crate) fn collection(policy: u32) -> String {
        format!("swift-{policy}")
    }

    /// The policy whose files are in this collection; `None` for other collections.
    pub(crate) fn policy_of(collection: &str) -> Option<u32> {
        let policy = collection.strip_prefix("swift-")?.parse().ok()?;
        (Self::collection(policy) == collection).then_some(policy)
    }

    /// The collection of a policy's suffixes.
    pub(crate) fn suffixes(policy: u32) -> String {
        format!("swift-{policy}-suffixes")
    }

    /// The collection of a policy's quarantined files.
    pub(crate) fn quarantined(policy: u32) -> String {
        format!("swift-{policy}-quarantined")
    }

    /// Prefix of the names of all files of a suffix.
    pub(crate) fn suffix_folder(partition: u32, suffix: Suffix) -> String {
        format!("{}/", Self::suffix_name(partition, suffix))
    }

    /// The name of a suffix.
    pub(crate) fn suffix_name(partition: u32, suffix: Suffix) -> String {
        format!("{partition:010}/{suffix}")
    }

    /// Prefix of the names of all files of the object, in a form for which the store skips SSTs that have none
    /// ([`store::LISTED_NAME`]).
    pub(crate) fn folder(self) -> String {
        let suffix = Self::suffix_folder(self.partition, self.hash.suffix());
        format!("{suffix}{}/", self.hash)
    }

    /// Name of one of the object's files.
    pub(crate) fn file(self, file: FileName) -> String {
        format!("{}{file}", self.folder())
    }
}

/// Parses the name of a suffix into partition and suffix.
pub(crate) fn parse_suffix(name: &str) -> Option<(u32, Suffix)> {
    let (partition, suffix) = name.split_once('/')?;
    let is_number = partition.len() == 10 && partition.bytes().all(|byte| byte.is_ascii_digit());
    let partition = is_number.then(|| partition.parse().ok()).flatten()?;
    Some((partition, suffix.parse().ok()?))
}

/// Hash and file in the name of a file. Only in the form that [`Address::file`] gives, under which it is found again.
pub(crate) fn parse_file(name: &str) -> Option<(ObjectHash, FileName)> {
    let mut parts = name.split('/').skip(2);
    let hash: ObjectHash = parts.next()?.parse().ok()?;
    let text = parts.next()?;
    let file: FileName = text.parse().ok()?;
    (parts.next().is_none() && file.to_string() == text).then_some((hash, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_of_an_object_are_looked_for_at_once() {
        for partition in [0, u32::MAX] {
            let hash = ObjectHash([0xab; 16]);
            let policy = 7;
            let address = Address {
                policy,
                partition,
                hash,
            };
            let folder = address.folder();
            assert_eq!(folder.len(), store::LISTED_NAME.len());
            let mut both = folder.bytes().zip(store::LISTED_NAME);
            assert!(both.all(|(byte, shape)| *shape == 0 || byte == *shape));
        }
    }
}
