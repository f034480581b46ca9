//! Names that S3 can use. The store takes any name; callers that put objects without S3 learn here whether S3 clients
//! will reach them.

use crate::xml;
use s3s::path::{check_bucket_name, check_key};

/// Names that S3 clients cannot see, of an object and, if it `is_new`, of its collection. Each with what it names and
/// the reason.
pub fn why_not_seen<'a>(
    collection: &'a str,
    is_new: bool,
    object: &'a [u8],
) -> Vec<(&'static str, &'a [u8], &'static str)> {
    let bucket = is_new.then(|| why_no_bucket(collection)).flatten();
    let key = why_no_key(object).or_else(|| why_not_listed(object));
    let bucket = bucket.map(|why| ("collection", collection.as_bytes(), why));
    bucket
        .into_iter()
        .chain(key.map(|why| ("object", object, why)))
        .collect()
}

/// Why S3 cannot reach a collection of this name; `None` if it can.
fn why_no_bucket(name: &str) -> Option<&'static str> {
    if check_bucket_name(name) {
        return None;
    }
    Some(
        "S3 cannot reach it: a bucket's name has 3 to 63 characters of a-z, 0-9, . and -, begins and ends \
         with a letter or digit, and is no IP address",
    )
}

/// Why S3 cannot reach an object of this name; `None` if it can.
fn why_no_key(name: &[u8]) -> Option<&'static str> {
    let text = std::str::from_utf8(name).ok()?;
    (!check_key(text)).then_some("S3 cannot reach it: a key has at most 1024 bytes")
}

/// Why a listing cannot show this name unchanged; `None` if it can. XML 1.0 excludes some characters.
fn why_not_listed(name: &[u8]) -> Option<&'static str> {
    let Ok(text) = std::str::from_utf8(name) else {
        return Some("it is no UTF-8: S3 clients neither see nor reach it");
    };
    (!xml::can_have(text)).then_some(
        "it has control characters that XML cannot carry: S3 clients see it percent-encoded",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_s3_can_name() {
        for bucket in ["papers", "a.b-c", "123", &"b".repeat(63)] {
            assert_eq!(why_no_bucket(bucket), None, "{bucket}");
        }
        for bucket in [
            "",
            "ab",
            "Papers",
            "a_b",
            ".uploads",
            "-ab",
            "a..b",
            "10.0.0.1",
            &"b".repeat(64),
        ] {
            assert!(why_no_bucket(bucket).is_some(), "{bucket}");
        }
        assert_eq!(why_no_key("k".repeat(1024).as_bytes()), None);
        assert!(why_not_listed(b"\xff").is_some());
        assert!(why_no_key("k".repeat(1025).as_bytes()).is_some());
        assert_eq!(
            why_not_listed("2016/smr.pdf \n naïve \u{10ffff}".as_bytes()),
            None
        );
        for key in ["\0", "a\u{1b}[2J", "\u{ffff}"] {
            assert!(why_not_listed(key.as_bytes()).is_some(), "{key:?}");
        }
    }
}
