//! A compact encoding of all zones of a drive.
//!
//! For each property a text with one character per zone, followed by a number where
//! several zones in a row have the same value. 110,000 zones of a drive that is filled in order take a few hundred
//! bytes, and never more than 440 kB.

use inspect::{Owner, ZoneView};
use objects::digest::{Algorithm, hex};
use serde::Serialize;
use zone::ZoneCondition;

/// Steps of a zone's fill: 0 is an empty zone, `PARTS` a full one.
const PARTS: u64 = 63;
/// Code after `PARTS`: not known.
const UNKNOWN: u8 = 64;
/// Character of code 0. Neither it nor the 64 after it are digits.
const FIRST: u8 = b':';

const OWNERS: [Owner; 15] = [
    Owner::Superblock,
    Owner::Journal,
    Owner::Wal,
    Owner::Manifest,
    Owner::Sst,
    Owner::SharedSsts,
    Owner::OtherFiles,
    Owner::Unnamed,
    Owner::Ready,
    Owner::Objects,
    Owner::GivenUp,
    Owner::Unused,
    Owner::Conventional,
    Owner::ReadOnly,
    Owner::Offline,
];
const CONDITIONS: [ZoneCondition; 8] = [
    ZoneCondition::NotWritePointer,
    ZoneCondition::Empty,
    ZoneCondition::ImplicitOpen,
    ZoneCondition::ExplicitOpen,
    ZoneCondition::Closed,
    ZoneCondition::Full,
    ZoneCondition::ReadOnly,
    ZoneCondition::Offline,
];

#[derive(Serialize)]
struct Written {
    zones: usize,
    parts: u64,
    owners: [&'static str; OWNERS.len()],
    conditions: [&'static str; CONDITIONS.len()],
    owner: String,
    condition: String,
    written: String,
    dead: String,
}

/// All zones as JSON, with an entity tag that changes when any zone does.
#[derive(Clone, Default)]
pub(crate) struct Codes {
    pub json: Vec<u8>,
    pub tag: String,
}

impl Codes {
    pub(crate) fn of(zones: &[ZoneView]) -> Self {
        let text = |code: &dyn Fn(&ZoneView) -> u8| packed(zones.iter().map(code));
        let place = |found: Option<usize>| found.map_or(UNKNOWN, |at| at as u8);
        let codes = Written {
            zones: zones.len(),
            parts: PARTS,
            owners: OWNERS.map(Owner::words),
            conditions: CONDITIONS.map(ZoneCondition::name),
            owner: text(&|z| place(OWNERS.iter().position(|o| *o == z.owner))),
            condition: text(&|z| place(CONDITIONS.iter().position(|c| *c == z.condition))),
            written: text(&|z| {
                z.used_bytes()
                    .map_or(UNKNOWN, |used| part(used, z.capacity))
            }),
            dead: text(&|z| z.dead_bytes.map_or(UNKNOWN, |dead| part(dead, z.capacity))),
        };
        // Only text and numbers, so this does not fail.
        let json = serde_json::to_vec(&codes).unwrap_or_default();
        let tag = format!("\"{}\"", hex(&Algorithm::Crc64Nvme.of(&json)));
        Self { json, tag }
    }
}

/// The step of `bytes` in `capacity`: 0 only if it is nothing, `PARTS` only if it is everything.
const fn part(bytes: u64, capacity: u64) -> u8 {
    if bytes == 0 || capacity == 0 {
        return 0;
    }
    if bytes >= capacity {
        return PARTS as u8;
    }
    let part = (bytes as u128 * (PARTS - 1) as u128 / capacity as u128) as u8;
    if part == 0 { 1 } else { part }
}

fn packed(values: impl Iterator<Item = u8>) -> String {
    let (mut text, mut values) = (String::new(), values.peekable());
    while let Some(value) = values.next() {
        let mut run = 1;
        while values.next_if_eq(&value).is_some() {
            run += 1;
        }
        text.push(char::from(FIRST + value));
        if run > 1 {
            text += &run.to_string();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_one_character_and_a_number() {
        let packed = |values: &[u8]| packed(values.iter().copied());
        assert_eq!(packed(&[]), "");
        assert_eq!(packed(&[0, 0, 0, 1, 63, 64, 64]), ":3;yz2");
        assert!((0..=UNKNOWN).all(|value| !(FIRST + value).is_ascii_digit()));
    }

    #[test]
    fn only_nothing_is_none_and_only_all_is_all() {
        assert_eq!(
            [0, 1, 999_999, 1_000_000].map(|b| part(b, 1_000_000)),
            [0, 1, 61, 63]
        );
        assert_eq!((part(5, 0), part(u64::MAX - 1, u64::MAX)), (0, 61));
    }
}
