//! Records of an extended header (POSIX pax): `LENGTH KEYWORD=VALUE\n`, where LENGTH counts the whole record. Values
//! are any bytes.

/// A keyword and a value.
pub type Record = (Vec<u8>, Vec<u8>);

pub fn add(out: &mut Vec<u8>, keyword: &[u8], value: &[u8]) {
    let rest = keyword.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    out.extend_from_slice(format!("{length} ").as_bytes());
    out.extend_from_slice(keyword);
    out.push(b'=');
    out.extend_from_slice(value);
    out.push(b'\n');
}

/// Parses all records; `None` if the bytes are not records.
pub fn parse(mut bytes: &[u8]) -> Option<Vec<Record>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let space = bytes.iter().position(|byte| *byte == b' ')?;
        let length: usize = std::str::from_utf8(&bytes[..space]).ok()?.parse().ok()?;
        let record = bytes.get(space + 1..length)?.strip_suffix(b"\n")?;
        let equals = record.iter().position(|byte| *byte == b'=')?;
        found.push((record[..equals].to_vec(), record[equals + 1..].to_vec()));
        bytes = &bytes[length..];
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_length_counts_itself() {
        for (length, begins) in [(4, "9 "), (5, "11 "), (93, "99 "), (94, "101 ")] {
            let mut out = Vec::new();
            add(&mut out, b"k", &vec![b'v'; length]);
            assert!(out.starts_with(begins.as_bytes()), "{length}");
            assert_eq!(out.len().to_string(), begins.trim());
        }
    }

    proptest! {
        #[test]
        fn parsing_inverts_adding(records in proptest::collection::vec(
            ("[a-zA-Z.%]{1,30}", proptest::collection::vec(any::<u8>(), 0..1200)), 0..6
        )) {
            let records: Vec<Record> = records.into_iter().map(|(k, v)| (k.into_bytes(), v)).collect();
            let mut out = Vec::new();
            for (keyword, value) in &records {
                add(&mut out, keyword, value);
            }
            prop_assert_eq!(parse(&out), Some(records));
        }

        #[test]
        fn any_bytes_parse_or_do_not(bytes in "[0-9 a=\n]{0,60}") {
            let _ = parse(bytes.as_bytes());
        }
    }
}
