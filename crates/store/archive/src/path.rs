//! Paths of members for people and other programs: `COLLECTION/OBJECT`. The exact names are in the extended headers.

use std::fmt::Write;

/// Folder of members that are not objects.
pub const OWN: &str = ".zonestore";

/// Escapes characters that a file name cannot contain, as `%` and two digits for each byte.
fn escaped(name: &[u8]) -> String {
    let mut out = String::new();
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '%' | '/' | '\\' | '\u{7f}' | '\0'..='\u{1f}' => {
                    let _ = write!(out, "%{:02X}", u32::from(character));
                }
                other => out.push(other),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// A part of a path between slashes; empty parts, `.` and `..` become harmless names.
fn part(text: &str) -> String {
    match text {
        "" => "%".to_owned(),
        "." | ".." => text.replace('.', "%2E"),
        text => text.to_owned(),
    }
}

/// The folder of a collection, without a trailing slash.
pub fn folder(collection: &str) -> String {
    match &*escaped(collection.as_bytes()) {
        OWN => OWN.replacen('.', "%2E", 1),
        text => part(text),
    }
}

/// The path of an object. `is_object` is called with each part of its name that ends before a slash: if that is an
/// object, it cannot be a folder too, so the folder gets a `%` after its name.
pub fn path(collection: &str, name: &[u8], mut is_object: impl FnMut(&[u8]) -> bool) -> String {
    let mut out = folder(collection);
    let mut begin = 0;
    loop {
        let rest = &name[begin..];
        let slash = rest.iter().position(|byte| *byte == b'/');
        let end = begin + slash.unwrap_or(rest.len());
        out.push('/');
        out.push_str(&part(&escaped(&name[begin..end])));
        if slash.is_none() {
            return out;
        }
        if is_object(&name[..end]) {
            out.push('%');
        }
        begin = end + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside_and_say_what_they_can() {
        let path = |name: &[u8]| path("papers", name, |_| false);
        assert_eq!(path(b"2016/smr.pdf"), "papers/2016/smr.pdf");
        assert_eq!(path("ü b".as_bytes()), "papers/ü b");
        assert_eq!(path(b"../../etc/x"), "papers/%2E%2E/%2E%2E/etc/x");
        assert_eq!(path(b"/a//b/"), "papers/%/a/%/b/%");
        assert_eq!(path(b""), "papers/%");
        assert_eq!(path(b"a%\xff\n\\"), "papers/a%25%FF%0A%5C");
        assert_eq!(folder(".uploads/papers"), ".uploads%2Fpapers");
        assert_eq!(
            (folder(".."), folder(OWN)),
            ("%2E%2E".into(), "%2Ezonestore".into())
        );
    }

    #[test]
    fn an_object_is_no_folder() {
        let is_object = |name: &[u8]| name == b"a" || name == b"a/b";
        assert_eq!(path("c", b"a/b/c", is_object), "c/a%/b%/c");
        assert_eq!(path("c", b"a", is_object), "c/a");
    }
}
