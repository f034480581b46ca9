//! Conditional requests (RFC 9110, 13.2.2): pure decisions from validators and headers.
//!
//! Reads are judged against an object that is held open. Writes are not judged here: their conditions are passed to
//! the store's transaction, which evaluates them at the moment of the write.

use crate::attributes::ETAG;
use crate::dates::timestamp;
use http::{HeaderMap, HeaderName};
use s3s::dto::{ETag, ETagCondition, Timestamp};
use s3s::{S3Result, s3_error};
use store::Condition;

/// The headers of a conditional read, or the `x-amz-copy-source-if-*` ones of a copy.
#[derive(Clone, Default, Debug)]
pub struct Preconditions {
    /// `If-Match`.
    pub if_match: Option<ETagCondition>,
    /// `If-None-Match`.
    pub if_none_match: Option<ETagCondition>,
    /// `If-Modified-Since`.
    pub if_modified_since: Option<Timestamp>,
    /// `If-Unmodified-Since`.
    pub if_unmodified_since: Option<Timestamp>,
}

/// Outcome of a conditional read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Answer the read.
    Proceed,
    /// The client's copy is current (304; a copy fails with 412 instead).
    NotModified,
    /// A condition does not hold (412).
    Failed,
}

/// Judges a read of an object with this tag and modification time (Unix time in microseconds).
pub fn judge(preconditions: &Preconditions, etag: &str, modified_micros: u64) -> Verdict {
    // HTTP dates have whole seconds.
    let modified = timestamp(modified_micros / 1_000_000 * 1_000_000);
    match (&preconditions.if_match, &preconditions.if_unmodified_since) {
        (Some(wanted), _) if !matches_strongly(wanted, etag) => return Verdict::Failed,
        (None, Some(since)) if modified > *since => return Verdict::Failed,
        _ => {}
    }
    match (
        &preconditions.if_none_match,
        &preconditions.if_modified_since,
    ) {
        (Some(unwanted), _) if matches_weakly(unwanted, etag) => Verdict::NotModified,
        (None, Some(since)) if modified <= *since => Verdict::NotModified,
        _ => Verdict::Proceed,
    }
}

/// The tags of a condition, and whether each is weak: the protocol's library takes a list of them for one tag, whose `W/` in
/// front of the first it has taken off. A tag of S3's has neither a comma nor a quote.
fn tags(condition: &ETag) -> impl Iterator<Item = (bool, &str)> {
    let (is_weak, value) = (condition.as_weak().is_some(), condition.value());
    value.split(',').enumerate().map(move |(number, tag)| {
        let tag = tag.trim();
        let weak = tag.strip_prefix("W/");
        let is_weak = weak.is_some() || (is_weak && number == 0);
        (is_weak, weak.unwrap_or(tag).trim_matches('"'))
    })
}

fn matches_strongly(condition: &ETagCondition, etag: &str) -> bool {
    match condition {
        ETagCondition::Any => true,
        ETagCondition::ETag(tag) => tags(tag).any(|(is_weak, tag)| !is_weak && tag == etag),
    }
}

fn matches_weakly(condition: &ETagCondition, etag: &str) -> bool {
    match condition {
        ETagCondition::Any => true,
        ETagCondition::ETag(tag) => tags(tag).any(|(_, tag)| tag == etag),
    }
}

/// The store conditions of a conditional write.
pub fn of_write(
    if_match: Option<&ETagCondition>,
    if_none_match: Option<&ETagCondition>,
) -> S3Result<Vec<Condition>> {
    let mut conditions = Vec::new();
    match if_match {
        Some(ETagCondition::Any) => conditions.push(Condition::Present),
        Some(ETagCondition::ETag(tag)) => {
            check_tag(tag)?;
            // A weak tag matches nothing strongly; no object has the empty tag.
            let value = tag.as_strong().unwrap_or_default();
            conditions.push(Condition::AttributeIs(
                ETAG.to_owned(),
                value.as_bytes().to_vec(),
            ));
        }
        None => {}
    }
    match if_none_match {
        Some(ETagCondition::Any) => conditions.push(Condition::Absent),
        Some(ETagCondition::ETag(tag)) => {
            check_tag(tag)?;
            conditions.push(Condition::AttributeIsNot(
                ETAG.to_owned(),
                tag.value().as_bytes().to_vec(),
            ));
        }
        None => {}
    }
    Ok(conditions)
}

/// Refuses what is not one tag. `s3s` takes all between the first quote and the last one for a tag, be it a list of
/// tags or `"*"`. No object has such a tag, so a write that must not find it would overwrite any object.
fn check_tag(tag: &ETag) -> S3Result<()> {
    let value = tag.value();
    let is_no_part = |letter: char| letter == '"' || letter == ',' || letter.is_ascii_whitespace();
    if value.is_empty() || value == "*" || value.contains(is_no_part) {
        return Err(s3_error!(
            NotImplemented,
            "A condition of a write takes one entity tag or *, and not \"{value}\""
        ));
    }
    Ok(())
}

/// The store conditions of a write whose input has no fields for the headers.
pub fn of_headers(headers: &HeaderMap) -> S3Result<Vec<Condition>> {
    let condition = |name: HeaderName| match headers.get(&name) {
        None => Ok(None),
        Some(value) => ETagCondition::parse_http_header(value.as_bytes())
            .map(Some)
            .map_err(|_| s3_error!(InvalidArgument, "The header {name} is no entity tag")),
    };
    let if_match = condition(http::header::IF_MATCH)?;
    let if_none_match = condition(http::header::IF_NONE_MATCH)?;
    of_write(if_match.as_ref(), if_none_match.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::Attributes;

    const TAG: &str = "9a0364b9e99bb480dd25e1f0284c8555";
    const TIME: u64 = 1_700_000_000_900_000;

    fn tag(value: &str) -> Option<ETagCondition> {
        Some(ETagCondition::ETag(ETag::Strong(value.to_owned())))
    }

    fn at(seconds: u64) -> Option<Timestamp> {
        Some(timestamp(seconds * 1_000_000))
    }

    fn verdict(preconditions: Preconditions) -> Verdict {
        judge(&preconditions, TAG, TIME)
    }

    #[test]
    fn tags_decide() {
        let cases = [
            (tag(TAG), None, Verdict::Proceed),
            (tag("other"), None, Verdict::Failed),
            (Some(ETagCondition::Any), None, Verdict::Proceed),
            (
                Some(ETagCondition::ETag(ETag::Weak(TAG.into()))),
                None,
                Verdict::Failed,
            ),
            (None, tag(TAG), Verdict::NotModified),
            (
                None,
                Some(ETagCondition::ETag(ETag::Weak(TAG.into()))),
                Verdict::NotModified,
            ),
            (None, Some(ETagCondition::Any), Verdict::NotModified),
            (None, tag("other"), Verdict::Proceed),
            (tag(TAG), tag(TAG), Verdict::NotModified),
            (tag("other"), tag(TAG), Verdict::Failed),
            // Lists, as the library gives them.
            (tag(&format!("other\", \"{TAG}")), None, Verdict::Proceed),
            (tag(&format!("other\", W/\"{TAG}")), None, Verdict::Failed),
            (tag("other\", \"another"), None, Verdict::Failed),
            (
                None,
                tag(&format!("other\",W/\"{TAG}")),
                Verdict::NotModified,
            ),
            (None, tag("other\", \"another"), Verdict::Proceed),
        ];
        for (if_match, if_none_match, expected) in cases {
            let case = format!("{if_match:?} {if_none_match:?}");
            let found = verdict(Preconditions {
                if_match,
                if_none_match,
                ..Default::default()
            });
            assert_eq!(found, expected, "{case}");
        }
    }

    #[test]
    fn times_decide_in_whole_seconds() {
        let modified_since = |seconds| {
            verdict(Preconditions {
                if_modified_since: at(seconds),
                ..Default::default()
            })
        };
        assert_eq!(modified_since(1_699_999_999), Verdict::Proceed);
        assert_eq!(modified_since(1_700_000_000), Verdict::NotModified);
        assert_eq!(modified_since(1_700_000_001), Verdict::NotModified);
        let unmodified_since = |seconds| {
            verdict(Preconditions {
                if_unmodified_since: at(seconds),
                ..Default::default()
            })
        };
        assert_eq!(unmodified_since(1_699_999_999), Verdict::Failed);
        assert_eq!(unmodified_since(1_700_000_000), Verdict::Proceed);
    }

    #[test]
    fn tags_win_over_times() {
        // RFC 9110: a tag condition that holds makes the time condition beside it moot.
        assert_eq!(
            verdict(Preconditions {
                if_match: tag(TAG),
                if_unmodified_since: at(1),
                ..Default::default()
            }),
            Verdict::Proceed
        );
        assert_eq!(
            verdict(Preconditions {
                if_none_match: tag("other"),
                if_modified_since: at(4_000_000_000),
                ..Default::default()
            }),
            Verdict::Proceed
        );
    }

    #[test]
    fn store_conditions_are_foreseen() {
        let object = Attributes::from([(ETAG.to_owned(), b"t".to_vec())]);
        let is = |value: &[u8]| Condition::AttributeIs(ETAG.into(), value.to_vec());
        let is_not = |value: &[u8]| Condition::AttributeIsNot(ETAG.into(), value.to_vec());
        for (condition, with, without) in [
            (Condition::Absent, false, true),
            (Condition::Present, true, false),
            (is(b"t"), true, false),
            (is(b"u"), false, false),
            (Condition::AttributeMissing(ETAG.into()), false, false),
            (Condition::AttributeMissing("other".into()), true, false),
            (is_not(b"t"), false, true),
            (is_not(b"u"), true, true),
        ] {
            assert_eq!(condition.holds(Some((&object, 0))), with, "{condition:?}");
            assert_eq!(condition.holds(None), without, "{condition:?}");
        }
    }

    #[test]
    fn writes_become_store_conditions() {
        assert_eq!(of_write(None, None).unwrap(), []);
        assert_eq!(
            of_write(None, Some(&ETagCondition::Any)).unwrap(),
            [Condition::Absent]
        );
        assert_eq!(
            of_write(Some(&ETagCondition::Any), None).unwrap(),
            [Condition::Present]
        );
        let is = Condition::AttributeIs(ETAG.into(), TAG.as_bytes().to_vec());
        let is_not = Condition::AttributeIsNot(ETAG.into(), TAG.as_bytes().to_vec());
        assert_eq!(of_write(tag(TAG).as_ref(), None).unwrap(), [is]);
        assert_eq!(of_write(None, tag(TAG).as_ref()).unwrap(), [is_not]);
        let weak = ETagCondition::ETag(ETag::Weak(TAG.into()));
        let never = Condition::AttributeIs(ETAG.into(), vec![]);
        assert_eq!(of_write(Some(&weak), None).unwrap(), [never]);
    }

    #[test]
    fn a_write_takes_one_tag() {
        for text in [
            r#""*""#,
            r#"W/"*""#,
            r#""""#,
            r#"W/"""#,
            r#""a b""#,
            "\"a\tb\"",
            r#""a,b""#,
            r#""a", "b""#,
            r#""a","b""#,
            r#"W/"a", "b""#,
            r#""a", W/"b""#,
        ] {
            let condition = ETagCondition::parse_http_header(text.as_bytes()).unwrap();
            for (if_match, if_none_match) in [(Some(&condition), None), (None, Some(&condition))] {
                let error = of_write(if_match, if_none_match).unwrap_err();
                assert_eq!(error.code().as_str(), "NotImplemented", "{text}");
            }
        }
        for text in ["*", "a", r#""a""#, r#"W/"a""#, r#""a-2""#] {
            let condition = ETagCondition::parse_http_header(text.as_bytes()).unwrap();
            assert!(of_write(Some(&condition), None).is_ok(), "{text}");
            assert!(of_write(None, Some(&condition)).is_ok(), "{text}");
        }
    }
}
