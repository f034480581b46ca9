//! Paths of objects as people write them.

use crate::Name;

/// Prefixes of collections that programs make for themselves, as `.uploads/BUCKET`.
const PROGRAMS: [&[u8]; 2] = [b".uploads/", b".versions/"];

/// `COLLECTION/OBJECT`: the first slash separates, later ones belong to the object's name. In
/// `.uploads/BUCKET/OBJECT` and `.versions/BUCKET/OBJECT` it is the second one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectPath {
    /// The collection.
    pub collection: String,
    /// The object.
    pub object: Name,
}

impl ObjectPath {
    /// Parses a path; everything after the separating slash is the object's name.
    pub fn from_bytes(text: &[u8]) -> Result<Self, &'static str> {
        match Self::prefix(text) {
            Ok(path) if !path.object.is_empty() => Ok(path),
            _ => Err("write COLLECTION/OBJECT, such as papers/2016/smr.pdf"),
        }
    }

    /// The collection, followed by a slash and the object's name unless that is empty.
    pub fn to_bytes(&self) -> Vec<u8> {
        match &*self.object {
            [] => self.collection.clone().into_bytes(),
            object => [self.collection.as_bytes(), b"/", object].concat(),
        }
    }

    /// Parses a collection, or a collection and a prefix of names in it.
    pub fn prefix(text: &[u8]) -> Result<Self, &'static str> {
        let mut programs = PROGRAMS.iter();
        let begin = programs.find(|begin| text.starts_with(begin) && text.len() > begin.len());
        let begin = begin.map_or(0, |begin| begin.len());
        let (collection, object) = match text[begin..].iter().position(|byte| *byte == b'/') {
            Some(slash) => (&text[..begin + slash], &text[begin + slash + 1..]),
            None => (text, &[][..]),
        };
        let collection = std::str::from_utf8(collection);
        match collection.ok().filter(|name| !name.is_empty()) {
            Some(collection) => Ok(Self {
                collection: collection.to_owned(),
                object: object.into(),
            }),
            None => Err("write COLLECTION or COLLECTION/PREFIX; collections' names are UTF-8"),
        }
    }
}

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn object_paths_split_at_the_first_slash() {
        let path = ObjectPath::from_bytes(b"a/b\xff/c").unwrap();
        assert_eq!(path.collection, "a");
        assert_eq!(&*path.object, b"b\xff/c");
        for bad in [&b""[..], b"a", b"a/", b"/b", b"\xff/b"] {
            assert!(ObjectPath::from_bytes(bad).is_err(), "{bad:?}");
        }
        let upload = ObjectPath::from_bytes(b".uploads/papers/id/1").unwrap();
        assert_eq!(upload.collection, ".uploads/papers");
        assert_eq!(&*upload.object, b"id/1");
        for collection in [&b"a"[..], b"a/", b".uploads/papers", b".uploads/"] {
            assert!(ObjectPath::prefix(collection).unwrap().object.is_empty());
        }
    }
}
