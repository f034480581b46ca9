//! Corrects XML documents that `s3s` writes, so that they are as S3 would write them.

use std::fmt::Write as _;

/// Whether XML 1.0 excludes this character, even as a reference.
fn is_forbidden(c: char) -> bool {
    matches!(c, '\0'..='\x08' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\u{fffe}' | '\u{ffff}')
}

/// Whether a name can be written in XML unchanged.
pub fn can_have(name: &str) -> bool {
    !name.chars().any(is_forbidden)
}

/// Whether [`mend`] would change a document.
pub fn is_sound(document: &str) -> bool {
    !document.contains('\r') && can_have(document)
}

/// Makes a document parse to what was meant: carriage returns become references, because a parser reads a bare one as
/// a line feed; characters that XML excludes are percent-encoded.
pub fn mend(document: &str) -> String {
    let mut out = String::with_capacity(document.len() + 16);
    for c in document.chars() {
        if c == '\r' {
            out.push_str("&#13;");
        } else if is_forbidden(c) {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                // Writing to a string cannot fail.
                let _ = write!(out, "%{byte:02X}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// Escapes text for an element.
pub fn escape(text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
    mend(&escaped.replace('>', "&gt;"))
}

/// Adds resource and request id to an error's document; `None` if it is not an error's.
pub fn with_request(document: &str, resource: &str, request_id: &str) -> Option<String> {
    let front = document.strip_suffix("</Error>")?;
    let resource = escape(resource);
    Some(format!(
        "{front}<Resource>{resource}</Resource><RequestId>{request_id}</RequestId></Error>"
    ))
}

/// Removes the quotes around a document's entity tag.
pub fn with_bare_tag(document: &str) -> String {
    document
        .replace("<ETag>\"", "<ETag>")
        .replace("\"</ETag>", "</ETag>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_mended() {
        assert!(is_sound("<Key>a\tb\nc é</Key>"));
        for (text, mended) in [
            ("a\rb", "a&#13;b"),
            ("a\u{1}b", "a%01b"),
            ("\u{ffff}", "%EF%BF%BF"),
        ] {
            assert!(!is_sound(text));
            assert_eq!(mend(text), mended);
        }
        assert!(can_have("a\rb") && !can_have("a\u{1f}b"));
    }

    #[test]
    fn errors_say_what_they_are_about() {
        let found = with_request("<Error><Code>X</Code></Error>", "/b/<k>&", "7").unwrap();
        let expected = "<Error><Code>X</Code><Resource>/b/&lt;k&gt;&amp;</Resource>\
                        <RequestId>7</RequestId></Error>";
        assert_eq!(found, expected);
        assert_eq!(with_request("<Other/>", "/", "7"), None);
        assert_eq!(
            with_bare_tag("<A><ETag>\"t-1\"</ETag></A>"),
            "<A><ETag>t-1</ETag></A>"
        );
    }
}
