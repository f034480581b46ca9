//! Translates errors of the store into errors of S3. The code tells the client what to do; the message has the
//! store's own words where they help the reader of a log.

use crate::dates::{format_time, timestamp};
use crate::xml;
use http::{HeaderMap, HeaderValue, Response, header};
use objects::{NotRun, Peer, ReadError, Refused};
use s3s::{Body, HttpError, S3Error, S3ErrorCode, s3_error};
use std::time::Duration;
use store::{Condition, Store};

/// Code of the answer 507: the drive is full of live data.
pub const INSUFFICIENT_CAPACITY: &str = "InsufficientCapacity";

/// The S3 error for an error of the store.
pub fn of_store(error: store::Error) -> S3Error {
    use store::Error as E;
    match &error {
        E::NoCollection { .. } => {
            s3_error!(NoSuchBucket, "The specified bucket does not exist")
        }
        E::CollectionExists { .. } => {
            s3_error!(
                BucketAlreadyOwnedByYou,
                "The bucket exists already, and it is yours"
            )
        }
        E::CollectionNotEmpty { .. } => {
            s3_error!(
                BucketNotEmpty,
                "The bucket you tried to delete is not empty"
            )
        }
        E::NoObject { .. } => s3_error!(NoSuchKey, "The specified key does not exist"),
        E::ConditionFailed { .. } => precondition_failed(),
        E::Invalid { .. } => s3_error!(InvalidArgument, "{error}"),
        full if full.is_no_space() => with_status(
            INSUFFICIENT_CAPACITY,
            507,
            format!("{error}; {}", way_out(&error)),
        ),
        E::Failed { .. } | E::WrittenLost { .. } => {
            s3_error!(ServiceUnavailable, "{error}")
        }
        error if error.is_read_only() => s3_error!(ServiceUnavailable, "{error}"),
        _ => {
            tracing::error!(%error, "store");
            s3_error!(InternalError, "{error}")
        }
    }
}

/// What can be done about a lack of space.
fn way_out(error: &store::Error) -> &'static str {
    match error.leaves_deletes() {
        true => "deleting objects still works, in a bucket with versions by versionId",
        false => {
            "deleting objects, in a bucket with versions by versionId, still works unless it is the host's disk that is \
             full: free space there, and writes go on"
        }
    }
}

/// The S3 error for an object that cannot be read.
pub fn of_read(error: ReadError) -> S3Error {
    match error {
        ReadError::Store(error) => of_store(error),
        ReadError::NotRun(why) => not_run(why),
        ReadError::Ends { .. } => s3_error!(InternalError, "{error}"),
    }
}

/// The S3 error for a store call without a result.
pub fn not_run(why: NotRun) -> S3Error {
    match why {
        NotRun::Stopping => s3_error!(ServiceUnavailable, "The server is stopping"),
        NotRun::Panicked => s3_error!(
            InternalError,
            "An internal error occurred; see the server's log"
        ),
    }
}

/// The error for a client that exceeds its quota; if it has too many connections, this one is closed.
pub fn slow_down(client: &str, why: Refused, peer: Option<&Peer>) -> S3Error {
    let seconds = match why {
        Refused::Rate(wait) => wait.as_secs() + u64::from(wait.subsec_nanos() > 0),
        Refused::Connections => {
            peer.inspect(|peer| peer.leave());
            1
        }
    };
    let mut error = match why {
        Refused::Rate(_) => s3_error!(
            SlowDown,
            "This {client} asks for more than it may in a second"
        ),
        Refused::Connections => s3_error!(SlowDown, "This {client} has too many connections"),
    };
    let after = HeaderValue::from(seconds.max(1));
    error.set_headers(HeaderMap::from_iter([(header::RETRY_AFTER, after)]));
    error
}

/// A condition of the request does not hold.
pub fn precondition_failed() -> S3Error {
    s3_error!(
        PreconditionFailed,
        "At least one of the preconditions you specified did not hold"
    )
}

/// The S3 error of a failed conditional write: `NoSuchKey` if an object was required and none exists.
pub fn condition_error(
    store: &Store,
    bucket: &str,
    key: &str,
    requires: &[Condition],
    error: store::Error,
) -> S3Error {
    if !matches!(error, store::Error::ConditionFailed { .. }) {
        return of_store(error);
    }
    let wants_object = requires
        .iter()
        .any(|c| matches!(c, Condition::Present | Condition::AttributeIs(..)));
    if wants_object && matches!(store.stat(bucket, key), Ok(None)) {
        return s3_error!(NoSuchKey, "The specified key does not exist");
    }
    precondition_failed()
}

/// The error for a trailer that `x-amz-trailer` announced and that did not arrive.
pub fn missing_trailer() -> S3Error {
    let message = "The request did not send the trailer that x-amz-trailer announced";
    with_status("MalformedTrailerError", 400, message)
}

/// The error for malformed trailers, or for data beside them.
pub fn malformed_trailer() -> S3Error {
    let message = "The request contained trailing data that was not well-formed";
    with_status("MalformedTrailerError", 400, message)
}

/// The error for a body that is not the one that was signed.
pub fn wrong_payload_hash() -> S3Error {
    let message = "The provided 'x-amz-content-sha256' header does not match what was computed";
    with_status("XAmzContentSHA256Mismatch", 400, message)
}

/// The error for an upload that does not exist, or not any more.
pub fn no_such_upload() -> S3Error {
    s3_error!(
        NoSuchUpload,
        "The specified upload does not exist. The upload ID may be invalid, or the upload may have \
         been aborted or completed."
    )
}

/// Messages of S3 for errors that `s3s` makes without one.
const WORDS: &[(&str, &str)] = &[
    (
        "SignatureDoesNotMatch",
        "The request signature we calculated does not match the signature you provided. Check your key \
         and signing method.",
    ),
    ("InvalidBucketName", "The specified bucket is not valid"),
    ("KeyTooLongError", "Your key is too long"),
    ("InvalidURI", "Couldn't parse the specified URI"),
    (
        "MalformedXML",
        "The XML you provided was not well-formed or did not validate against our published schema",
    ),
    (
        "MethodNotAllowed",
        "The specified method is not allowed against this resource",
    ),
    (
        "IncompleteBody",
        "You did not provide the number of bytes specified by the Content-Length HTTP header",
    ),
];

/// An error's document with S3's message, if `s3s` gave it none.
pub fn in_words(document: &[u8]) -> Option<String> {
    let document = std::str::from_utf8(document).ok()?;
    let (front, rest) = document.split_once("<Code>")?;
    let (code, rest) = rest.split_once("</Code>")?;
    let (_, words) = WORDS.iter().find(|(known, _)| *known == code)?;
    if rest.contains("<Message>") || front.contains("<Message>") {
        return None;
    }
    Some(format!(
        "{front}<Code>{code}</Code><Message>{words}</Message>{rest}"
    ))
}

/// Longest time between a request's signature and its arrival, in either direction.
pub const MAX_SKEW: Duration = Duration::from_secs(15 * 60);

/// The document of `RequestTimeTooSkewed` with the times, as S3 has it: when the request was signed, and now.
pub fn with_times(document: &str, (signed_at, now): (Option<&str>, u64)) -> Option<String> {
    let front = document.strip_suffix("</Error>")?;
    if !front.contains("<Code>RequestTimeTooSkewed</Code>") {
        return None;
    }
    let signed_at = xml::escape(signed_at?);
    let now = format_time(&timestamp(now - now % 1_000_000))?.replace(".000Z", "Z");
    let most = MAX_SKEW.as_millis();
    Some(format!(
        "{front}<RequestTime>{signed_at}</RequestTime><ServerTime>{now}</ServerTime>\
         <MaxAllowedSkewMilliseconds>{most}</MaxAllowedSkewMilliseconds></Error>"
    ))
}

/// The answer for an error.
///
/// # Errors
/// The error cannot be serialised.
pub fn response(error: S3Error) -> Result<Response<Body>, HttpError> {
    error
        .to_http_response()
        .map_err(|error| HttpError::new(Box::new(error)))
}

/// An error with a code and a status that `s3s` does not have.
pub fn with_status(code: &'static str, status: u16, message: impl Into<String>) -> S3Error {
    let mut error =
        S3Error::with_message(S3ErrorCode::Custom(code.to_owned().into()), message.into());
    if let Ok(status) = http::StatusCode::from_u16(status) {
        error.set_status_code(status);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_drive_is_a_507() {
        let error = of_store(store::Error::NoSpace {
            live: 10,
            capacity: 12,
            wanted: 4,
        });
        assert_eq!(error.code().as_str(), INSUFFICIENT_CAPACITY);
        assert_eq!(error.status_code().map(|s| s.as_u16()), Some(507));
    }

    #[test]
    fn a_full_disk_of_the_host_is_not_answered_by_deleting() {
        let words = |free| {
            let kept = 32 << 20;
            let error = of_store(store::Error::HostFull { free, kept });
            assert_eq!(error.code().as_str(), INSUFFICIENT_CAPACITY);
            error.message().unwrap().to_owned()
        };
        assert!(words(0).contains("unless it is the host's disk"));
        assert!(words(16 << 20).ends_with("by versionId"));
    }

    #[test]
    fn a_read_only_host_is_a_503() {
        let code = |kind: std::io::ErrorKind| {
            let error = zone::ZoneError::Io {
                command: zone::ZoneCommand::Write,
                at: zone::ByteOffset(0),
                source: std::sync::Arc::new(kind.into()),
            };
            of_store(error.into()).code().as_str().to_owned()
        };
        let read_only = std::io::ErrorKind::ReadOnlyFilesystem;
        assert_eq!(code(read_only), "ServiceUnavailable");
        assert_eq!(code(std::io::ErrorKind::Other), "InternalError");
    }

    #[test]
    fn a_call_that_panicked_is_an_internal_error() {
        assert_eq!(not_run(NotRun::Panicked).code().as_str(), "InternalError");
        let stopping = not_run(NotRun::Stopping);
        assert_eq!(stopping.code().as_str(), "ServiceUnavailable");
    }

    #[test]
    fn what_has_no_words_gets_those_of_s3() {
        for (code, words) in WORDS {
            let bare = format!("<Error><Code>{code}</Code></Error>");
            let worded = in_words(bare.as_bytes()).unwrap();
            let expected = format!("</Code><Message>{words}</Message></Error>");
            assert!(worded.ends_with(&expected), "{worded}");
            assert_eq!(in_words(worded.as_bytes()), None);
        }
        assert_eq!(in_words(b"<Error><Code>NoSuchKey</Code></Error>"), None);
        assert_eq!(in_words(b"\xff"), None);
    }

    #[test]
    fn clocks_that_differ_are_told_from_each_other() {
        let skewed = "<Error><Code>RequestTimeTooSkewed</Code></Error>";
        let found = with_times(skewed, (Some("20250901T162148Z"), 1_756_916_510_999_999));
        let expected = "<Error><Code>RequestTimeTooSkewed</Code><RequestTime>20250901T162148Z</RequestTime>\
                        <ServerTime>2025-09-03T16:21:50Z</ServerTime>\
                        <MaxAllowedSkewMilliseconds>900000</MaxAllowedSkewMilliseconds></Error>";
        assert_eq!(found.as_deref(), Some(expected));
        assert_eq!(
            with_times("<Error><Code>X</Code></Error>", (Some("x"), 0)),
            None
        );
    }

    #[test]
    fn names_map_to_their_codes() {
        let collection = || "b".to_owned();
        let cases = [
            (
                store::Error::NoCollection {
                    collection: collection(),
                },
                "NoSuchBucket",
            ),
            (
                store::Error::CollectionExists {
                    collection: collection(),
                },
                "BucketAlreadyOwnedByYou",
            ),
            (
                store::Error::CollectionNotEmpty {
                    collection: collection(),
                },
                "BucketNotEmpty",
            ),
            (
                store::Error::NoObject {
                    collection: collection(),
                    object: "o".into(),
                },
                "NoSuchKey",
            ),
            (
                store::Error::ConditionFailed {
                    collection: collection(),
                    object: "o".into(),
                },
                "PreconditionFailed",
            ),
            (store::Error::ReadOnly, "ServiceUnavailable"),
            (
                store::Error::Failed {
                    reason: "the drive".into(),
                },
                "ServiceUnavailable",
            ),
            (
                store::Error::WrittenLost {
                    zone: zone::ZoneId(3),
                },
                "ServiceUnavailable",
            ),
        ];
        for (error, code) in cases {
            assert_eq!(of_store(error).code().as_str(), code);
        }
    }

    #[test]
    fn damage_names_object_and_offset() {
        let at = zone_address();
        let error = of_store(store::Error::ChecksumMismatch {
            object: "b/k".into(),
            offset: 65536,
            at,
            expected: 1,
            found: 2,
        });
        assert_eq!(error.code().as_str(), "InternalError");
        let message = error.message().unwrap_or_default();
        assert!(
            message.contains("b/k") && message.contains("65536"),
            "{message}"
        );
    }

    fn zone_address() -> zone::ZoneAddress {
        zone::ZoneAddress::new(zone::ZoneId(3), 4096)
    }
}
