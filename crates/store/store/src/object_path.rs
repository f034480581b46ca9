//! Where an object is, as people write it.

use std::str::FromStr;

/// `COLLECTION/OBJECT`: the first slash separates, later ones belong to the object's name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectPath {
    /// The collection.
    pub collection: String,
    /// The object.
    pub object: String,
}

impl FromStr for ObjectPath {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            Some((collection, object)) if !collection.is_empty() && !object.is_empty() => {
                Ok(Self {
                    collection: collection.to_owned(),
                    object: object.to_owned(),
                })
            }
            _ => Err("write COLLECTION/OBJECT, such as papers/2016/smr.pdf"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_paths_split_at_the_first_slash() {
        let path: ObjectPath = "a/b/c".parse().unwrap();
        assert_eq!(
            (path.collection.as_str(), path.object.as_str()),
            ("a", "b/c")
        );
        for bad in ["", "a", "a/", "/b"] {
            assert!(bad.parse::<ObjectPath>().is_err(), "{bad}");
        }
    }
}
