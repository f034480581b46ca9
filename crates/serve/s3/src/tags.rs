//! Tags of an object: which are valid, and how they are stored.

use s3s::{S3Error, S3ErrorCode, S3Result, s3_error};
use std::collections::BTreeSet;

/// Most tags of an object.
const MAX_TAGS: usize = 10;
/// Most characters of a tag's key, and of its value.
const MAX_KEY: usize = 128;
const MAX_VALUE: usize = 256;
/// Keys with this prefix are reserved for Amazon.
const SYSTEM: &str = "aws:";

/// The tags of an object, in the order in which they were given.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Tags(Vec<(String, String)>);

impl Tags {
    /// Checks that an object may have these tags.
    pub fn new(tags: Vec<(String, String)>) -> S3Result<Self> {
        if tags.len() > MAX_TAGS {
            let mut error = S3Error::new(S3ErrorCode::Custom("BadRequest".into()));
            error.set_status_code(http::StatusCode::BAD_REQUEST);
            error.set_message(format!("Object tags cannot be greater than {MAX_TAGS}"));
            return Err(error);
        }
        for (index, (key, value)) in tags.iter().enumerate() {
            if key.is_empty() || !may_be(key, MAX_KEY) {
                return Err(s3_error!(
                    InvalidTag,
                    "The TagKey you have provided is invalid: {key:?}"
                ));
            }
            if key.starts_with(SYSTEM) {
                return Err(s3_error!(
                    InvalidTag,
                    "System tags cannot be added or updated by requester: {key:?}"
                ));
            }
            if !may_be(value, MAX_VALUE) {
                return Err(s3_error!(
                    InvalidTag,
                    "The TagValue you have provided is invalid: {value:?}"
                ));
            }
            if tags[..index].iter().any(|(other, _)| other == key) {
                return Err(s3_error!(
                    InvalidTag,
                    "Cannot provide multiple Tags with the same key: {key:?}"
                ));
            }
        }
        Ok(Self(tags))
    }

    /// The tags in the header `x-amz-tagging`, which is encoded as a query.
    pub fn of_header(header: Option<&str>) -> S3Result<Self> {
        let tags = form_urlencoded::parse(header.unwrap_or_default().as_bytes());
        let tags: Vec<_> = tags.into_owned().collect();
        let keys: BTreeSet<_> = tags.iter().map(|(key, _)| key).collect();
        // Bytes that are not UTF-8 have become U+FFFD, and a `%` is left of an invalid escape.
        let is_text = |text: &str| !text.contains(['\u{fffd}', '%']);
        let is_tag =
            |(key, value): &(String, String)| !key.is_empty() && is_text(key) && is_text(value);
        if keys.len() < tags.len() || !tags.iter().all(is_tag) {
            return Err(s3_error!(
                InvalidArgument,
                "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query \
                 parameters without tag name duplicates."
            ));
        }
        Self::new(tags)
    }

    /// Keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Number of tags; `None` if there are none.
    pub fn count(&self) -> Option<i32> {
        i32::try_from(self.0.len()).ok().filter(|count| *count > 0)
    }

    /// The tags as stored: a line each, with a tab between key and value, which can contain neither.
    pub fn encode(&self) -> Option<String> {
        let lines = self.iter().map(|(key, value)| format!("{key}\t{value}\n"));
        Some(lines.collect()).filter(|text: &String| !text.is_empty())
    }

    /// Decodes stored tags; lines without a tab are left out.
    pub fn decode(text: &str) -> Self {
        let tag = |line: &str| {
            let (key, value) = line.split_once('\t')?;
            Some((key.to_owned(), value.to_owned()))
        };
        Self(text.lines().filter_map(tag).collect())
    }
}

/// Whether a key or value has only letters, digits, spaces and some signs, as in Amazon S3.
fn may_be(text: &str, most: usize) -> bool {
    let is_known = |c: char| {
        c.is_alphanumeric() || "_.:/=+-@".contains(c) || (c.is_whitespace() && !c.is_control())
    };
    text.chars().count() <= most && text.chars().all(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn code(tags: &str) -> String {
        let refused = Tags::of_header(Some(tags)).unwrap_err();
        refused.code().as_str().to_owned()
    }

    #[test]
    fn a_header_is_a_query() {
        let tags = Tags::of_header(Some("a=1&b%20c=%C3%A4+%2F&empty=&bare")).unwrap();
        let all: Vec<_> = tags.iter().collect();
        let expected = [("a", "1"), ("b c", "ä /"), ("empty", ""), ("bare", "")];
        assert_eq!((all, tags.count()), (expected.to_vec(), Some(4)));
        for none in [None, Some("")] {
            assert_eq!(Tags::of_header(none).unwrap().count(), None);
        }
    }

    #[test]
    fn what_may_be_no_tag_is_refused() {
        for wrong in ["a%09b=1", "a=1%0a", "a%3Cb=1", "aws:x=1"] {
            assert_eq!(code(wrong), "InvalidTag", "{wrong}");
        }
        for wrong in ["=1", "a=1&a=2", "a=%FF", "%c3=1", "a=100%"] {
            assert_eq!(code(wrong), "InvalidArgument", "{wrong}");
        }
        let twice = vec![("a".to_owned(), String::new()); 2];
        assert_eq!(Tags::new(twice).unwrap_err().code().as_str(), "InvalidTag");
        let long = |key, value| format!("{}={}", "ä".repeat(key), "b".repeat(value));
        assert!(Tags::of_header(Some(&long(128, 256))).is_ok());
        assert_eq!(code(&long(129, 1)), "InvalidTag");
        assert_eq!(code(&long(1, 257)), "InvalidTag");
        let many = |n| (0..n).map(|n| format!("k{n}=v&")).collect::<String>();
        assert_eq!(Tags::of_header(Some(&many(10))).unwrap().count(), Some(10));
        assert_eq!(code(&many(11)), "BadRequest");
    }

    proptest! {
        #[test]
        fn what_is_kept_comes_back(given in prop::collection::btree_map("\\PC{1,9}", "\\PC{0,9}", 0..12)) {
            if let Ok(tags) = Tags::new(given.into_iter().collect()) {
                prop_assert_eq!(Tags::decode(&tags.encode().unwrap_or_default()), tags);
            }
        }

        #[test]
        fn anything_decodes(text in "\\PC{0,20}|[a\t\n\r]{0,20}") {
            Tags::decode(&text);
        }
    }
}
