//! An archive's list: JSON, one value in each line, and in the last line a checksum of everything before it in the
//! archive. Nothing here does I/O.

use crate::sum::Sum;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use store::{Attributes, CollectionInfo, Hashed, Name};

/// Version of the format.
pub const VERSION: u32 = 1;

/// Kind of an archive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Some objects, or all of them.
    Export,
    /// A whole store.
    Full,
    /// Changes since an earlier backup, and a list of all objects.
    Incremental,
}

impl Kind {
    /// The kind in words, for messages.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Export => "an export",
            Self::Full => "a full backup",
            Self::Incremental => "an incremental backup",
        }
    }
}

/// The first line of an archive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Head {
    pub version: u32,
    pub kind: Kind,
    /// The store's UUID, in hexadecimal digits.
    pub store: String,
    /// When the archive was made, Unix time in microseconds.
    pub created_micros: u64,
    /// For an incremental backup: the checksum in the head of the backup that it builds on.
    pub since: Option<Sum>,
    /// Whether a server had the store open meanwhile. Left out if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_served: bool,
    /// All collections, or those that were selected, in order of their names.
    pub collections: Vec<Collection>,
}

/// A collection.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Collection {
    pub name: String,
    /// Hash source, family and prefix; `None`: its objects are in order of their names.
    pub hashed: Option<Hashed>,
    pub created_micros: u64,
    pub attributes: BTreeMap<String, Name>,
}

impl Collection {
    /// Whether both are the same collection, so that unchanged objects are found under the same names.
    pub fn is_same(&self, other: &Self) -> bool {
        let key = |c: &Self| (c.name.clone(), c.hashed, c.created_micros);
        key(self) == key(other)
    }

    /// Its attributes, as a store has them.
    pub fn attributes(&self) -> Attributes {
        let attributes = self.attributes.iter();
        attributes.map(|(k, v)| (k.clone(), v.to_vec())).collect()
    }

    /// Sort key of a name in the collection's order.
    pub fn order<'a>(&self, name: &'a [u8]) -> (u32, &'a [u8]) {
        let hash = self.hashed.map_or(0, |hashed| hashed.source.hash(name));
        (hash, name)
    }
}

impl From<CollectionInfo> for Collection {
    fn from(info: CollectionInfo) -> Self {
        let attributes = info.attributes.iter();
        Self {
            hashed: info.hashed,
            created_micros: info.created_micros,
            attributes: attributes.map(|(k, v)| (k.clone(), v.into())).collect(),
            name: info.name,
        }
    }
}

impl From<&Collection> for CollectionInfo {
    fn from(collection: &Collection) -> Self {
        Self {
            name: collection.name.clone(),
            hashed: collection.hashed,
            created_micros: collection.created_micros,
            attributes: collection.attributes(),
        }
    }
}

/// A line about an object, in the order of its collection.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Listed {
    /// Index of its collection in the head.
    pub collection: usize,
    pub name: Name,
    /// A digest of its metadata that changes with the object.
    pub state: Sum,
    pub bytes: u64,
    /// Checksum of its data and omap in this archive; `None`: it is unchanged, and in the backup that this one builds
    /// on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<Sum>,
    /// Byte ranges that could not be read; the archive has zeros in their place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<Range<u64>>,
}

/// The last line of the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct End {
    /// Objects with data in this archive.
    pub objects: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Objects in the list.
    pub listed: u64,
    /// Objects that could not be read whole, or not at all.
    pub damaged: u64,
    /// The last checksum of the backup that this one builds on.
    pub since: Option<Sum>,
}

/// A line after the head.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// An object of the list.
    Object(Listed),
    /// The list ends with this line.
    End(End),
}

/// The checksum line at the end of the head and of every part.
#[derive(Serialize, Deserialize)]
struct Last {
    sum: Sum,
}

pub fn encode<T: Serialize>(line: &T, out: &mut Vec<u8>) -> serde_json::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.push(b'\n');
    Ok(())
}

pub fn encode_sum(sum: Sum) -> Vec<u8> {
    format!("{{\"sum\":\"{sum}\"}}\n").into_bytes()
}

/// The lines before the last one, and the checksum in that one.
pub fn split(text: &[u8]) -> Option<(&[u8], Sum)> {
    let whole = text.strip_suffix(b"\n")?;
    let end = whole.iter().rposition(|byte| *byte == b'\n')? + 1;
    let last: Last = serde_json::from_slice(&whole[end..]).ok()?;
    // Only one spelling is valid, so that every changed bit is noticed.
    (encode_sum(last.sum) == text[end..]).then_some((&text[..end], last.sum))
}

/// Decodes each line as a value; `None` if one cannot be decoded.
pub fn decode<T: DeserializeOwned>(text: &[u8]) -> Option<Vec<T>> {
    let lines = text.strip_suffix(b"\n")?.split(|byte| *byte == b'\n');
    lines
        .map(|line| serde_json::from_slice(line).ok())
        .collect()
}

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// First cells of the document's tables.
    fn told() -> Vec<&'static str> {
        let document = include_str!("../../../../docs/format/store-archive.md");
        assert!(document.starts_with(&format!(
            "# The format of a store's archive, version {VERSION}\n"
        )));
        let rows = document.lines().filter_map(|line| line.strip_prefix("| `"));
        rows.filter_map(|row| row.split('`').next()).collect()
    }

    #[test]
    fn the_document_names_what_is_written() {
        let collection = Collection {
            name: "c".to_owned(),
            hashed: None,
            created_micros: 1,
            attributes: BTreeMap::new(),
        };
        let head = Head {
            version: VERSION,
            kind: Kind::Full,
            store: String::new(),
            created_micros: 1,
            is_served: false,
            since: None,
            collections: vec![collection.clone()],
        };
        let listed = Listed {
            collection: 0,
            name: "o".into(),
            state: Sum(1),
            bytes: 1,
            sum: Some(Sum(1)),
            lost: vec![1..2, 3..4],
        };
        let written = [
            serde_json::to_value(head),
            serde_json::to_value(collection),
            serde_json::to_value(listed),
            serde_json::to_value(End::default()),
        ];
        let told = told();
        for value in written {
            for (name, _) in value.unwrap().as_object().unwrap() {
                assert!(told.contains(&name.as_str()), "{name}");
            }
        }
    }

    #[test]
    fn lines_survive_and_the_last_one_has_one_spelling() {
        let line = Line::Object(Listed {
            collection: 1,
            name: (&b"\xff\n"[..]).into(),
            state: Sum(5),
            bytes: 9,
            sum: Some(Sum(u128::MAX)),
            lost: vec![3..4, 6..9],
        });
        let mut text = Vec::new();
        encode(&line, &mut text).unwrap();
        assert_eq!(decode::<Line>(&text), Some(vec![line]));
        let lines = text.len();
        text.extend(encode_sum(Sum(6)));
        assert_eq!(split(&text), Some((&text[..lines], Sum(6))));
        for at in lines..text.len() {
            let mut bad = text.clone();
            bad[at] ^= 1;
            assert_ne!(split(&bad), split(&text), "{at}");
        }
    }
}
