//! What docs/format/backup.md says, beside what the code does.

use backup::format::{CHECKSUMS, Contents, Member, VERSION};
use serde_json::Value;

const DOCUMENT: &str = include_str!("../../../../docs/format/backup.md");

/// The first two cells of the rows below the head `field | value`.
fn fields() -> Vec<(&'static str, &'static str)> {
    let rows = DOCUMENT
        .lines()
        .skip_while(|line| !line.starts_with("| field |"));
    let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
    let cells = rows.filter_map(|line| line.trim_matches('|').split_once('|'));
    cells
        .map(|(name, value)| (name.trim().trim_matches('`'), value.trim()))
        .collect()
}

#[test]
fn the_document_names_what_is_written() {
    let contents = Contents {
        directories: vec!["/a".to_owned()],
        files: vec![Member {
            path: "/a/b".to_owned(),
            bytes: 1,
            crc32c: 2,
        }],
        ..Contents::default()
    };
    let text = String::from_utf8(contents.encode().unwrap()).unwrap();
    let (object, sum) = text.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(sum.len(), 8);
    let written: Value = serde_json::from_str(object).unwrap();
    let names =
        |value: &Value| -> Vec<String> { value.as_object().unwrap().keys().cloned().collect() };
    let mut told: Vec<_> = fields()
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    told.sort();
    let mut found = names(&written);
    found.sort();
    assert_eq!(told, found);
    let value = |name| {
        fields()
            .into_iter()
            .find(|(field, _)| *field == name)
            .unwrap()
            .1
    };
    assert_eq!(value("version"), VERSION.to_string());
    for name in names(&written["files"][0]) {
        assert!(value("files").contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn title_and_last_file() {
    let title = DOCUMENT.lines().next().unwrap();
    assert!(title.ends_with(&format!("version {VERSION}")), "{title}");
    assert!(DOCUMENT.contains(&format!("`{CHECKSUMS}`")));
}
