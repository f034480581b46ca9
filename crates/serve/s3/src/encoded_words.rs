//! Encoded words (RFC 2047) in user metadata, which `s3s` decodes before this crate sees them.
//!
//! It panics at one value, and others it would keep as something else than was sent. Both are refused here.

use http::HeaderMap;
use s3s::{S3Result, s3_error};

/// Refuses user metadata that `s3s` cannot decode to what it says.
pub fn check(headers: &HeaderMap) -> S3Result<()> {
    for (name, value) in headers {
        if !name.as_str().starts_with("x-amz-meta-") {
            continue;
        }
        // `s3s` refuses what is no UTF-8.
        let Ok(text) = std::str::from_utf8(value.as_bytes()) else {
            continue;
        };
        let words = || text.split_whitespace();
        // `s3s` takes this for an encoded word, as it begins and ends like one, and cuts two bytes off both ends. Of
        // three bytes, that is a panic.
        if words().any(|word| word == "=?=") {
            return Err(s3_error!(
                InvalidArgument,
                "The header {name} has =?= in it, which is no encoded word"
            ));
        }
        // `s3s` leaves out what stands between encoded words, takes every charset for UTF-8, and decodes a value that
        // begins and ends like a word as one, even with spaces in it.
        let whole = text.trim();
        let has_words = charset(whole).is_some() || words().any(|word| charset(word).is_some());
        let is_utf8 = |word| charset(word).is_some_and(|name| name.eq_ignore_ascii_case("utf-8"));
        if has_words && !words().all(is_utf8) {
            return Err(s3_error!(
                NotImplemented,
                "The header {name} has encoded words (RFC 2047) and is not all words in UTF-8"
            ));
        }
    }
    Ok(())
}

/// The charset of an encoded word, `=?charset?encoding?text?=`; `None` of other text.
fn charset(word: &str) -> Option<&str> {
    let inner = word.strip_prefix("=?")?.strip_suffix("?=")?;
    let mut fields = inner.splitn(3, '?');
    let charset = fields.next()?;
    fields.nth(1).map(|_| charset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    fn checked(name: &'static str, value: &str) -> Result<(), String> {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
        headers.insert(HeaderName::from_static(name), value);
        check(&headers).map_err(|error| error.code().as_str().to_owned())
    }

    #[test]
    fn text_and_words_in_utf8_pass() {
        for value in [
            "",
            "text",
            "Grüße",
            "=?",
            "?=",
            "=",
            "a=?UTF-8?Q?b?=c",
            "=?UTF-8?Q?Gr=C3=BC=C3=9Fe?=",
            "=?utf-8?b?w6nDqQ==?=",
            "=?UTF-8?Q?a?= =?Utf-8?B?Yg==?=",
            "  =?UTF-8?Q?a?=\t=?UTF-8?Q?b?=  ",
            // Refused by `s3s`: no words, but they begin and end like one.
            "=??=",
            "=?a?=",
            "=?a b?=",
        ] {
            assert_eq!(checked("x-amz-meta-a", value), Ok(()), "{value}");
        }
        assert_eq!(checked("x-amz-tagging", "=?="), Ok(()));
    }

    #[test]
    fn what_begins_where_it_ends_is_refused() {
        for value in ["=?=", " =?= ", "=?= =?=", "=?UTF-8?Q?a?= =?=", "a =?= b"] {
            let found = checked("x-amz-meta-a", value);
            assert_eq!(found, Err("InvalidArgument".to_owned()), "{value}");
        }
    }

    #[test]
    fn what_would_change_is_refused() {
        for value in [
            "=?UTF-8?Q?Gr=C3=BC=C3=9Fe?= from =?UTF-8?Q?K=C3=B6ln?=",
            "from =?UTF-8?Q?K=C3=B6ln?=",
            "=?UTF-8?Q?K=C3=B6ln?= from",
            "=?ISO-8859-1?Q?a?=",
            "=?UTF-8?Q?a?= =?ISO-8859-1?Q?a?=",
            "=?UTF-8*de?Q?a?=",
            "=??Q?a?=",
            "=?UTF-8?Q?a b?=",
            "=?ISO-8859-1?Q?a b?=",
        ] {
            let found = checked("x-amz-meta-a", value);
            assert_eq!(found, Err("NotImplemented".to_owned()), "{value}");
        }
    }
}
