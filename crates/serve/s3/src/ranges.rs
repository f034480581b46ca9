//! The bytes that a read asks for, from its range or part number. Pure.

use crate::attributes::PartSizes;
use crate::errors::with_status;
use http::{HeaderMap, HeaderValue};
use s3s::dto::Range;
use s3s::{S3Error, S3Result, s3_error};
use std::ops;

/// The range of an object that a read asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestedRange {
    /// First byte, and the end after the last byte.
    pub range: ops::Range<u64>,
    /// Whether the answer has status 206.
    pub partial: bool,
    /// Number of the object's parts, if the read asks for a part.
    pub parts_count: Option<i32>,
}

impl RequestedRange {
    /// The `Content-Range` header.
    pub fn content_range(&self, size: u64) -> Option<String> {
        let last = self.range.end.checked_sub(1)?;
        self.partial
            .then(|| format!("bytes {}-{last}/{size}", self.range.start))
    }

    /// The `Content-Length` header.
    pub fn length(&self) -> Option<i64> {
        i64::try_from(self.range.end - self.range.start).ok()
    }
}

/// The range of a read, for an object of `size` bytes in these parts.
pub fn requested_range(
    size: u64,
    parts: Option<&PartSizes>,
    range: Option<&Range>,
    part: Option<i32>,
) -> S3Result<RequestedRange> {
    match (range, part) {
        (None, None) => Ok(RequestedRange {
            range: 0..size,
            partial: false,
            parts_count: None,
        }),
        (Some(_), Some(_)) => Err(s3_error!(
            InvalidRequest,
            "Cannot specify both Range header and partNumber"
        )),
        (Some(range), None) => {
            let range = resolve(range, size).ok_or_else(|| unsatisfiable(size))?;
            Ok(RequestedRange {
                range,
                partial: true,
                parts_count: None,
            })
        }
        (None, Some(number)) => {
            let place = match (parts, u32::try_from(number)) {
                (Some(parts), Ok(number)) => parts.locate(number),
                (None, Ok(1)) => Some((0, size)),
                _ => None,
            };
            let end =
                place.and_then(|(start, len)| start.checked_add(len).filter(|end| *end <= size));
            let (Some((start, _)), Some(end)) = (place, end) else {
                let message = "The requested partnumber is not satisfiable";
                return Err(with_status("InvalidPartNumber", 416, message));
            };
            let count = parts.and_then(|parts| i32::try_from(parts.count()).ok());
            Ok(RequestedRange {
                range: start..end,
                // A client that reads the first part learns the object's size from `Content-Range`, which cannot
                // describe an empty range.
                partial: start < end,
                parts_count: count,
            })
        }
    }
}

/// The range that a request asks for. `bytes=-` is ignored, as in S3; `s3s` takes it for the last 0 bytes.
pub fn said(range: Option<Range>, headers: &HeaderMap) -> Option<Range> {
    let value = headers.get(http::header::RANGE);
    range.filter(|_| value.is_none_or(|value| value != "bytes=-"))
}

/// The bytes that a range header selects; `None` if it selects none.
pub fn resolve(range: &Range, size: u64) -> Option<ops::Range<u64>> {
    let found = match *range {
        Range::Int { first, last } => {
            first..last.map_or(size, |last| last.saturating_add(1).min(size))
        }
        Range::Suffix { length } => size.saturating_sub(length)..size,
    };
    (!found.is_empty()).then_some(found)
}

/// The answer 416, with the object's size.
pub fn unsatisfiable(size: u64) -> S3Error {
    let mut error = s3_error!(InvalidRange, "The requested range is not satisfiable");
    if let Ok(value) = HeaderValue::from_str(&format!("bytes */{size}")) {
        error.set_headers(HeaderMap::from_iter([(http::header::CONTENT_RANGE, value)]));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(first: u64, last: Option<u64>) -> Range {
        Range::Int { first, last }
    }

    #[test]
    fn ranges_mean_bytes() {
        assert_eq!(resolve(&int(0, Some(0)), 10), Some(0..1));
        assert_eq!(resolve(&int(3, None), 10), Some(3..10));
        assert_eq!(resolve(&int(3, Some(u64::MAX)), 10), Some(3..10));
        assert_eq!(resolve(&int(9, Some(20)), 10), Some(9..10));
        assert_eq!(resolve(&int(10, None), 10), None);
        assert_eq!(resolve(&Range::Suffix { length: 4 }, 10), Some(6..10));
        assert_eq!(resolve(&Range::Suffix { length: 40 }, 10), Some(0..10));
        assert_eq!(resolve(&Range::Suffix { length: 0 }, 10), None);
        assert_eq!(resolve(&Range::Suffix { length: 4 }, 0), None);
        assert_eq!(resolve(&int(0, None), 0), None);
    }

    #[test]
    fn a_range_without_numbers_is_none() {
        let range = |value: &'static str| {
            let headers = [(http::header::RANGE, HeaderValue::from_static(value))];
            said(Range::parse(value).ok(), &HeaderMap::from_iter(headers))
        };
        assert_eq!(range("bytes=-"), None);
        assert_eq!(range("bytes=-0"), Some(Range::Suffix { length: 0 }));
        assert_eq!(range("bytes=3-"), Some(int(3, None)));
    }

    #[test]
    fn parts_are_ranges() {
        let parts = PartSizes::new([10, 10, 5]);
        let found = requested_range(25, Some(&parts), None, Some(3)).unwrap();
        assert_eq!((found.range.clone(), found.parts_count), (20..25, Some(3)));
        assert_eq!(found.content_range(25).as_deref(), Some("bytes 20-24/25"));
        let code = |size, parts: Option<&PartSizes>, number| {
            requested_range(size, parts, None, Some(number))
                .unwrap_err()
                .code()
                .as_str()
                .to_owned()
        };
        for number in [0, -1, 4] {
            assert_eq!(code(25, Some(&parts), number), "InvalidPartNumber");
        }
        assert_eq!(
            requested_range(25, None, None, Some(1)).unwrap().range,
            0..25
        );
        assert_eq!(code(25, None, 2), "InvalidPartNumber");
        // Sizes that the object does not have: from a damaged or foreign attribute.
        assert_eq!(code(7, Some(&PartSizes::new([10])), 1), "InvalidPartNumber");
    }
}
