//! Ranges of the numbers in a profile, for all kinds of drives. Whether they fit together is checked when the drive
//! is built.

use crate::profile_error::ProfileError;
use crate::request::BLOCK_BYTES;
use serde::Serialize;
use toml::{Table, Value};

/// Range of the numbers whose field name has a certain ending.
struct Range {
    ending: &'static str,
    least: f64,
    most: f64,
    words: &'static str,
}

const fn range(ending: &'static str, least: f64, most: f64, words: &'static str) -> Range {
    Range {
        ending,
        least,
        most,
        words,
    }
}

/// The first range whose ending fits applies. The limits are far from real drives, and close enough that sums over a
/// run do not overflow.
const RANGES: [Range; 9] = [
    // A completion that takes no time would let a run of two seconds go on for ever.
    range("command_us", 1.0, 3.6e9, "1 to 3,600,000,000 (an hour)"),
    range("_us", 0.0, 3.6e9, "0 to 3,600,000,000 (an hour)"),
    range("_ms", 0.0, 3.6e6, "0 to 3,600,000 (an hour)"),
    range("_per_million", 0.0, 1e6, "0 to 1,000,000"),
    range("_bytes_per_second", 1.0, 1e11, "1 to 100,000,000,000"),
    // Every request in the volatile cache is examined for each choice.
    range("cache_bytes", 0.0, GIB, "0 to 1,073,741,824 (1 GiB)"),
    range(
        "capacity_bytes",
        BLOCK_BYTES as f64,
        // Maps hold block numbers of 32 bits.
        (u32::MAX as u64 * BLOCK_BYTES) as f64,
        "4,096 to 17,592,186,040,320 (16 TiB)",
    ),
    range(
        "_bytes",
        0.0,
        16_384.0 * GIB,
        "0 to 17,592,186,044,416 (16 TiB)",
    ),
    range("", 0.0, u32::MAX as f64, "0 to 4,294,967,295"),
];

const GIB: f64 = (1u64 << 30) as f64;

/// Checks every number of a profile.
pub(crate) fn check(table: &Table) -> Result<(), ProfileError> {
    for (path, value) in leaves(table) {
        check_value(&path, value)?;
    }
    Ok(())
}

/// Checks every number of a profile that a program has put together.
pub(crate) fn check_of(profile: &impl Serialize) -> Result<(), ProfileError> {
    match Table::try_from(profile) {
        Ok(table) => check(&table),
        Err(error) => Err(ProfileError::Syntax {
            reason: error.to_string(),
        }),
    }
}

fn check_value(path: &str, value: &Value) -> Result<(), ProfileError> {
    let number = match value {
        Value::Integer(number) => *number as f64,
        Value::Float(number) => *number,
        Value::Array(list) => return list.iter().try_for_each(|one| check_value(path, one)),
        _ => return Ok(()),
    };
    let fits = |range: &&Range| path.ends_with(range.ending);
    let out = RANGES.iter().find(fits);
    match out.filter(|range| !(range.least..=range.most).contains(&number)) {
        Some(range) => Err(ProfileError::Number {
            field: path.to_owned(),
            value: shown(value),
            must: range.words.to_owned(),
        }),
        None => Ok(()),
    }
}

/// A number for an error message, with an exponent if it is very large or small.
fn shown(value: &Value) -> String {
    match value {
        Value::Float(number) => format!("{number:?}"),
        other => other.to_string(),
    }
}

/// All fields that are not tables, by `table.field`.
pub(crate) fn leaves(table: &Table) -> Vec<(String, &Value)> {
    let mut all = Vec::new();
    for (name, value) in table {
        if let Value::Table(inner) = value {
            let below = leaves(inner).into_iter();
            all.extend(below.map(|(path, value)| (format!("{name}.{path}"), value)));
        } else {
            all.push((name.clone(), value));
        }
    }
    all
}

/// The profile without one field.
pub(crate) fn without(table: &Table, path: &str) -> Table {
    let mut rest = table.clone();
    match path.split_once('.') {
        None => _ = rest.remove(path),
        Some((name, below)) => {
            if let Some(Value::Table(inner)) = rest.get_mut(name) {
                *inner = without(inner, below);
            }
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let table: Table = toml::from_str(text).unwrap();
        check(&table).unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_said_with_field_value_and_range() {
        assert_eq!(
            error("[electronics]\ncommand_us = nan"),
            "electronics.command_us is NaN: it must be 1 to 3,600,000,000 (an hour)"
        );
        assert_eq!(
            error("[seek]\nhead_switch_ms = 1e300"),
            "seek.head_switch_ms is 1e300: it must be 0 to 3,600,000 (an hour)"
        );
        assert_eq!(
            error("capacity_bytes = 3"),
            "capacity_bytes is 3: it must be 4,096 to 17,592,186,040,320 (16 TiB)"
        );
        assert_eq!(
            error("a = [1.0, -inf]"),
            "a is -inf: it must be 0 to 4,294,967,295"
        );
    }
}
