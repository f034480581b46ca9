//! Names and paths as people can read them and a shell takes them.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Whether a character moves the cursor or changes the text direction.
pub fn hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}')
        || c == '\u{feff}'
}

/// A name without anything [`hidden`]: `$'a\nb'`.
pub fn quoted(name: &[u8]) -> Cow<'_, str> {
    // A plain name that looks quoted is quoted too, so that the two cannot be confused.
    if let Ok(plain) = std::str::from_utf8(name)
        && !plain.contains(hidden)
        && !plain.starts_with("$'")
    {
        return Cow::Borrowed(plain);
    }
    let mut text = String::from("$'");
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => text += "\\n",
                '\t' => text += "\\t",
                '\r' => text += "\\r",
                '\'' => text += "\\'",
                '\\' => text += "\\\\",
                c if c.is_ascii_control() => text += &format!("\\x{:02x}", u32::from(c)),
                c if hidden(c) => text += &format!("\\u{:04x}", u32::from(c)),
                c => text.push(c),
            }
        }
        let bytes = chunk.invalid().iter();
        text.extend(bytes.map(|byte| format!("\\x{byte:02x}")));
    }
    text.push('\'');
    Cow::Owned(text)
}

/// A path as one word of a shell's command line, quoted if it has to be. One that begins with `-` is no option: `./-x`.
pub fn shell_word(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() > 1 && bytes.starts_with(b"-") {
        return shell_text(&[b"./", bytes].concat());
    }
    shell_text(bytes)
}

/// A name that is no path of the host, such as a key or that of a collection, as one word of a shell's command line.
pub fn shell_text(name: &[u8]) -> String {
    let word = quoted(name);
    let plain = |c: char| c.is_alphanumeric() || "/._-+,:@%=".contains(c);
    if word.starts_with("$'") || !word.is_empty() && word.chars().all(plain) {
        return word.into_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_words_of_a_shell() {
        for (path, word) in [
            ("/dev/sda", "/dev/sda"),
            ("data/drive0.zoned.keys", "data/drive0.zoned.keys"),
            ("no dir", "'no dir'"),
            ("my d'r$x.zoned", r"'my d'\''r$x.zoned'"),
            ("a\nb", r"$'a\nb'"),
            ("-x.zoned", "./-x.zoned"),
            ("-x y", "'./-x y'"),
            ("-", "-"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(Path::new(path)), word);
        }
        assert_eq!(shell_text(b"-x y"), "'-x y'");
    }

    #[test]
    fn names_that_could_mislead_or_are_no_text_are_quoted() {
        assert_eq!(quoted(b"a\xffb\xc3"), r"$'a\xffb\xc3'");
        for plain in ["a", "a b", "2016/smr.pdf", "naïve’s \"x\"", ""] {
            assert_eq!(quoted(plain.as_bytes()), plain);
        }
        let quoted = |name: &'static str| quoted(name.as_bytes());
        assert_eq!(quoted("a\nb"), r"$'a\nb'");
        assert_eq!(quoted("\u{1b}[31mit's\\"), r"$'\x1b[31mit\'s\\'");
        assert_eq!(quoted("a\u{202e}b"), r"$'a\u202eb'");
        assert_eq!(quoted("a\u{85}b"), r"$'a\u0085b'");
        assert_eq!(quoted("$'a'"), r"$'$\'a\''");
    }
}
