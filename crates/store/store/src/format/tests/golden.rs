//! Rows as they were written when version 3 was made: valid, torn and corrupt. They stay as they are.

use super::{decoded, oracle};
use proptest::prelude::*;
use std::sync::OnceLock;

const ROWS: &str = include_str!("golden.txt");

/// Record, what it is (valid, torn, corrupt), bytes.
type Row = (&'static str, &'static str, Vec<u8>);

fn rows() -> &'static [Row] {
    static PARSED: OnceLock<Vec<Row>> = OnceLock::new();
    PARSED.get_or_init(|| parse().collect())
}

fn parse() -> impl Iterator<Item = Row> {
    let lines = ROWS.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let mut words = line.split(' ');
        let (record, what) = (words.next().unwrap(), words.next().unwrap());
        let bytes = words.map(|hex| u8::from_str_radix(hex, 16).unwrap());
        (record, what, bytes.collect())
    })
}

#[test]
fn rows_of_this_version_mean_what_they_meant() {
    let mut counts = [0; 3];
    for (record, what, bytes) in rows() {
        let fields = decoded(record, bytes);
        assert_eq!(
            fields,
            oracle::decode(record, bytes),
            "{record} {what} {bytes:02x?}"
        );
        let index = ["valid", "torn", "corrupt"].iter().position(|w| w == what);
        counts[index.unwrap()] += 1;
        assert_eq!(
            fields.is_some(),
            *what == "valid",
            "{record} {what} {bytes:02x?}"
        );
    }
    assert!(counts.iter().all(|count| *count >= 8), "{counts:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    /// A row with some bytes changed, or shorter or longer, is the same to both decoders.
    #[test]
    fn both_decoders_agree_on_damaged_rows(
        index in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), 0u8..40), 0..4),
        tail in prop::option::of(any::<u8>()),
    ) {
        let (record, _, mut bytes) = index.get(rows()).clone();
        for (at, value) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = if value < 32 { bytes[at] ^ (1 << (value % 8)) } else { value - 32 };
            }
        }
        bytes.extend(tail);
        prop_assert_eq!(decoded(record, &bytes), oracle::decode(record, &bytes));
    }
}
