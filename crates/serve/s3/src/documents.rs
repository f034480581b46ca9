//! Checks XML documents that clients send, before `s3s` reads them.
//!
//! The reader of `s3s` skips unknown elements, CDATA sections, attributes, and text in wrong places:
//! `<Key>a<![CDATA[b]]></Key>` deletes `a`, and a condition in the wrong place is ignored. So a document may hold
//! only what its operation carries out; others are refused.

use crate::dates::parse_time;
use quick_xml::Reader;
use quick_xml::events::{BytesDecl, BytesRef, BytesStart, Event};

/// Why a document is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The document asks for what is not implemented.
    NotImplemented(String),
    /// The document is not the XML that S3 describes.
    Malformed(String),
}

use Fault::{Malformed, NotImplemented};

/// Content of an element.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Elements,
    Text,
    /// Digits only: `s3s` would take leading digits and ignore the rest.
    Number,
    /// Digits, after a minus if negative, which the operation refuses.
    Signed,
    /// RFC 3339: for other forms, the error of `s3s` would not name the element.
    Time,
}
use Holds::{Elements, Number, Signed, Text, Time};

/// All elements that operations carry out, or refuse by name, with their content.
const ELEMENTS: &[(&str, Holds)] = &[
    ("CompleteMultipartUpload", Elements),
    ("CompleteMultipartUpload/Part", Elements),
    ("CompleteMultipartUpload/Part/ChecksumCRC32", Text),
    ("CompleteMultipartUpload/Part/ChecksumCRC32C", Text),
    ("CompleteMultipartUpload/Part/ChecksumCRC64NVME", Text),
    ("CompleteMultipartUpload/Part/ChecksumSHA1", Text),
    ("CompleteMultipartUpload/Part/ChecksumSHA256", Text),
    ("CompleteMultipartUpload/Part/ETag", Text),
    ("CompleteMultipartUpload/Part/PartNumber", Number),
    ("CreateBucketConfiguration", Elements),
    ("CreateBucketConfiguration/LocationConstraint", Text),
    ("Delete", Elements),
    ("Delete/Object", Elements),
    ("Delete/Object/ETag", Text),
    ("Delete/Object/Key", Text),
    ("Delete/Object/LastModifiedTime", Text),
    ("Delete/Object/Size", Number),
    ("Delete/Object/VersionId", Text),
    ("Delete/Quiet", Text),
    ("LegalHold", Elements),
    ("LegalHold/Status", Text),
    ("LifecycleConfiguration", Elements),
    ("LifecycleConfiguration/Rule", Elements),
    (
        "LifecycleConfiguration/Rule/AbortIncompleteMultipartUpload",
        Elements,
    ),
    (
        "LifecycleConfiguration/Rule/AbortIncompleteMultipartUpload/DaysAfterInitiation",
        Number,
    ),
    ("LifecycleConfiguration/Rule/Expiration", Elements),
    ("LifecycleConfiguration/Rule/Expiration/Date", Time),
    ("LifecycleConfiguration/Rule/Expiration/Days", Number),
    (
        "LifecycleConfiguration/Rule/Expiration/ExpiredObjectDeleteMarker",
        Text,
    ),
    ("LifecycleConfiguration/Rule/Filter", Elements),
    ("LifecycleConfiguration/Rule/Filter/And", Elements),
    (
        "LifecycleConfiguration/Rule/Filter/And/ObjectSizeGreaterThan",
        Number,
    ),
    (
        "LifecycleConfiguration/Rule/Filter/And/ObjectSizeLessThan",
        Number,
    ),
    ("LifecycleConfiguration/Rule/Filter/And/Prefix", Text),
    ("LifecycleConfiguration/Rule/Filter/And/Tag", Elements),
    ("LifecycleConfiguration/Rule/Filter/And/Tag/Key", Text),
    ("LifecycleConfiguration/Rule/Filter/And/Tag/Value", Text),
    (
        "LifecycleConfiguration/Rule/Filter/ObjectSizeGreaterThan",
        Number,
    ),
    (
        "LifecycleConfiguration/Rule/Filter/ObjectSizeLessThan",
        Number,
    ),
    ("LifecycleConfiguration/Rule/Filter/Prefix", Text),
    ("LifecycleConfiguration/Rule/Filter/Tag", Elements),
    ("LifecycleConfiguration/Rule/Filter/Tag/Key", Text),
    ("LifecycleConfiguration/Rule/Filter/Tag/Value", Text),
    ("LifecycleConfiguration/Rule/ID", Text),
    (
        "LifecycleConfiguration/Rule/NoncurrentVersionExpiration",
        Elements,
    ),
    (
        "LifecycleConfiguration/Rule/NoncurrentVersionExpiration/NewerNoncurrentVersions",
        Number,
    ),
    (
        "LifecycleConfiguration/Rule/NoncurrentVersionExpiration/NoncurrentDays",
        Number,
    ),
    ("LifecycleConfiguration/Rule/Prefix", Text),
    ("LifecycleConfiguration/Rule/Status", Text),
    ("ObjectLockConfiguration", Elements),
    ("ObjectLockConfiguration/ObjectLockEnabled", Text),
    ("ObjectLockConfiguration/Rule", Elements),
    ("ObjectLockConfiguration/Rule/DefaultRetention", Elements),
    ("ObjectLockConfiguration/Rule/DefaultRetention/Days", Signed),
    ("ObjectLockConfiguration/Rule/DefaultRetention/Mode", Text),
    (
        "ObjectLockConfiguration/Rule/DefaultRetention/Years",
        Signed,
    ),
    ("Retention", Elements),
    ("Retention/Mode", Text),
    ("Retention/RetainUntilDate", Time),
    ("Tagging", Elements),
    ("Tagging/TagSet", Elements),
    ("Tagging/TagSet/Tag", Elements),
    ("Tagging/TagSet/Tag/Key", Text),
    ("Tagging/TagSet/Tag/Value", Text),
    ("VersioningConfiguration", Elements),
    ("VersioningConfiguration/MfaDelete", Text),
    ("VersioningConfiguration/Status", Text),
];

/// Refuses a document of which `s3s` would ignore a part.
pub fn check(document: &[u8]) -> Result<(), Fault> {
    let document = std::str::from_utf8(document)
        .map_err(|_| Malformed("The document is not UTF-8".to_owned()))?;
    let mut reader = Reader::from_str(document);
    // Never longer than the longest path of a known element and one more name.
    let mut path = String::new();
    let mut holds = Elements;
    loop {
        let event = reader
            .read_event()
            .map_err(|error| Malformed(format!("The document is not XML: {error}")))?;
        match event {
            Event::Start(start) => {
                holds = enter(&mut path, &start)?;
            }
            Event::Empty(start) => {
                enter(&mut path, &start)?;
                leave(&mut path);
            }
            Event::End(_) => {
                leave(&mut path);
                holds = Elements;
            }
            Event::Text(text) => check_text(&path, holds, &String::from_utf8_lossy(&text))?,
            Event::GeneralRef(name) if holds == Text => check_reference(&path, &name)?,
            Event::GeneralRef(_) => return Err(no_text(&path)),
            Event::Decl(declaration) => check_declaration(&declaration)?,
            Event::CData(_) => {
                return Err(NotImplemented(
                    "Sections of CDATA are not implemented: escape the text instead".to_owned(),
                ));
            }
            Event::DocType(_) => {
                return Err(Malformed(
                    "A document has no type of its own: leave <!DOCTYPE> out".to_owned(),
                ));
            }
            Event::Comment(_) | Event::PI(_) => {}
            Event::Eof => return Ok(()),
        }
    }
}

fn enter(path: &mut String, start: &BytesStart<'_>) -> Result<Holds, Fault> {
    let name = String::from_utf8_lossy(start.name().into_inner()).into_owned();
    if !path.is_empty() {
        path.push('/');
    }
    path.push_str(&name);
    let Some((_, holds)) = ELEMENTS.iter().find(|(known, _)| known == path) else {
        return Err(NotImplemented(format!(
            "The element {path} is not implemented"
        )));
    };
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| Malformed(format!("{path}: {error}")))?;
        let key = attribute.key.into_inner();
        if key != b"xmlns" && !key.starts_with(b"xmlns:") && !key.starts_with(b"xsi:") {
            let key = String::from_utf8_lossy(key);
            return Err(NotImplemented(format!(
                "The attribute {key} of {path} is not implemented"
            )));
        }
    }
    Ok(*holds)
}

fn leave(path: &mut String) {
    path.truncate(path.rfind('/').unwrap_or_default());
}

fn check_text(path: &str, holds: Holds, text: &str) -> Result<(), Fault> {
    match holds {
        Elements if !text.bytes().all(|byte| byte.is_ascii_whitespace()) => Err(no_text(path)),
        Number if !text.bytes().all(|byte| byte.is_ascii_digit()) => {
            Err(Malformed(format!("{path} is no number: {text:?}")))
        }
        Signed => check_text(path, Number, text.strip_prefix('-').unwrap_or(text)),
        Time if parse_time(text).is_none() => Err(Malformed(format!(
            "{path} is no time such as 2030-01-31T00:00:00Z: {text:?}"
        ))),
        // XML parsers turn every line end into a line feed.
        Text if text.contains('\r') => Err(Malformed(format!(
            "{path} has a carriage return: write it as &#13;"
        ))),
        _ => Ok(()),
    }
}

/// `s3s` resolves the predefined entities of XML and references to characters, and refuses other entities as malformed; so
/// it does with references to characters of these planes.
fn check_reference(path: &str, name: &BytesRef<'_>) -> Result<(), Fault> {
    match name.resolve_char_ref() {
        Ok(Some(character @ '\u{10000}'..='\u{fffff}')) => Err(NotImplemented(format!(
            "{path} refers to the character {character} by its number: write it in UTF-8"
        ))),
        _ => Ok(()),
    }
}

fn no_text(path: &str) -> Fault {
    match path {
        "" => Malformed("There is text beside the document's element".to_owned()),
        path => Malformed(format!("{path} has text of its own")),
    }
}

fn check_declaration(declaration: &BytesDecl<'_>) -> Result<(), Fault> {
    match declaration.encoding() {
        Some(Ok(encoding)) if !encoding.eq_ignore_ascii_case(b"utf-8") => {
            Err(NotImplemented(format!(
                "The encoding {} is not implemented: write the document in UTF-8",
                String::from_utf8_lossy(&encoding)
            )))
        }
        Some(Err(error)) => Err(Malformed(error.to_string())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delete(object: &str) -> String {
        format!("<Delete><Object>{object}</Object></Delete>")
    }

    fn lock(default: &str) -> String {
        format!(
            "<ObjectLockConfiguration><Rule><DefaultRetention>{default}</DefaultRetention></Rule></ObjectLockConfiguration>"
        )
    }

    #[test]
    fn what_is_carried_out_passes() {
        for document in [
            "",
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\r\n<Delete \
             xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\r\n <Quiet>true</Quiet>\
             <Object><Key>a&#13;&amp;b <!-- c --></Key><VersionId>null</VersionId></Object>\n</Delete>\n",
            "<Delete><Object><Key/><ETag>\"x\"</ETag><Size>17</Size></Object></Delete>",
            "<Delete><Object><Key>&#xE9;\u{1f600}&#x10FFFD;</Key></Object></Delete>",
            &lock("<Mode>GOVERNANCE</Mode><Days>-9</Days>"),
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>x</ETag>\
             <ChecksumCRC32>AAAAAA==</ChecksumCRC32></Part></CompleteMultipartUpload>",
            "<CreateBucketConfiguration xmlns:xsi=\"x\" xsi:schemaLocation=\"y\">\
             <LocationConstraint>eu-west-1</LocationConstraint></CreateBucketConfiguration>",
        ] {
            assert_eq!(check(document.as_bytes()), Ok(()), "{document}");
        }
    }

    #[test]
    fn what_a_reader_would_leave_out_is_refused() {
        for document in [
            delete("<Key>a<![CDATA[b]]></Key>"),
            delete("<Key>a</Key><IfUnmodified>x</IfUnmodified>"),
            delete("<Key version=\"1\">a</Key>"),
            delete("<Key><b>a</b></Key>"),
            delete("<Key>a&#x1F600;</Key>"),
            delete("<Key>&#128512;</Key>"),
            "<Delete><ETag>x</ETag><Object><Key>a</Key></Object></Delete>".to_owned(),
            "<s:Delete xmlns:s=\"x\"/>".to_owned(),
            "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><Delete/>".to_owned(),
            "<CreateBucketConfiguration><Tags/></CreateBucketConfiguration>".to_owned(),
            "<Tagging><Tag/></Tagging>".to_owned(),
        ] {
            let found = check(document.as_bytes());
            assert!(
                matches!(found, Err(NotImplemented(_))),
                "{document}: {found:?}"
            );
        }
        for document in [
            delete("a<Key>b</Key>"),
            delete("&#65;<Key>b</Key>"),
            delete("<Key>a\r\nb</Key>"),
            delete("<Key>a</Key><Size>9x</Size>"),
            delete("<Key>a</Key><Size>-9</Size>"),
            "<LifecycleConfiguration><Rule><Expiration><Date>2030-01-01</Date></Expiration></Rule></LifecycleConfiguration>".to_owned(),
            lock("<Days>--9</Days>"),
            lock("<Years>1.5</Years>"),
            delete("<Key>a</Key").replace("</Object>", ""),
            format!("{}junk", delete("<Key>a</Key>")),
            "<!DOCTYPE a [<!ENTITY k \"x\">]><Delete/>".to_owned(),
        ] {
            let found = check(document.as_bytes());
            assert!(matches!(found, Err(Malformed(_))), "{document}: {found:?}");
        }
        assert!(matches!(check(b"<Delete>\xff</Delete>"), Err(Malformed(_))));
    }

    #[test]
    fn deep_documents_go_no_deeper_than_what_is_known() {
        let deep = format!("<Delete>{}", "<Object>".repeat(100_000));
        assert!(matches!(check(deep.as_bytes()), Err(NotImplemented(_))));
    }
}
