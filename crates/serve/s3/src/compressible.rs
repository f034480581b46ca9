//! Whether a body is worth compressing, as far as its headers tell.

use http::{HeaderMap, HeaderName, header};

/// Beginnings of media types that are compressed already.
const SMALL: &[&str] = &[
    "application/gzip",
    "application/vnd.openxmlformats",
    "application/x-7z",
    "application/x-bzip",
    "application/x-gzip",
    "application/x-rar",
    "application/x-xz",
    "application/zip",
    "application/zstd",
    "audio/",
    "font/woff",
    "image/",
    "video/",
];
/// Beginnings of media types that can be compressed; they take precedence over [`SMALL`].
const LARGE: &[&str] = &[
    "application/javascript",
    "application/json",
    "application/sql",
    "application/x-ndjson",
    "application/x-tar",
    "application/xml",
    "image/bmp",
    "image/svg",
    "image/tiff",
    "text/",
];

/// `None` if the headers do not tell.
pub fn by_headers(headers: &HeaderMap) -> Option<bool> {
    let value = |name: HeaderName| headers.get(name)?.to_str().ok();
    let encodings = value(header::CONTENT_ENCODING).unwrap_or("").split(',');
    let mut encodings = encodings.map(str::trim).filter(|name| !name.is_empty());
    // `aws-chunked` is the framing of signed bodies and is removed.
    if encodings.any(|name| name != "aws-chunked" && name != "identity") {
        return Some(false);
    }
    let media_type = value(header::CONTENT_TYPE)?.to_ascii_lowercase();
    let begins = |list: &[&str]| list.iter().any(|first| media_type.starts_with(first));
    let is_text = media_type.contains("+json") || media_type.contains("+xml");
    if begins(LARGE) || is_text {
        Some(true)
    } else {
        begins(SMALL).then_some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::by_headers;
    use http::{HeaderMap, HeaderValue, header};

    #[test]
    fn media_types_and_encodings_tell() {
        let cases = [
            ("text/plain; charset=utf-8", "", Some(true)),
            ("Application/JSON", "aws-chunked", Some(true)),
            ("application/atom+xml", "", Some(true)),
            ("image/svg+xml", "", Some(true)),
            ("image/jpeg", "", Some(false)),
            ("text/css", "gzip", Some(false)),
            ("text/css", "aws-chunked, br", Some(false)),
            ("application/octet-stream", "", None),
            ("", "", None),
        ];
        for (media_type, encoding, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
            assert_eq!(by_headers(&headers), expected, "{media_type} {encoding}");
        }
    }
}
