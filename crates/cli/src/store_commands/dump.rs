//! `store dump`: prints the records of the database, one per line.

use super::{Access, with_store};
use crate::args::StoreDump;
use crate::errors::{CommandError, CommandResult, fail};
use crate::output::{Output, accept_damage};
use serde_json::{Map, Value, json};
use store::{Dumped, Name};
use terminal::{count, utc};

/// `store dump`.
pub fn dump(arguments: &StoreDump, out: &mut Output) -> CommandResult {
    with_store(&arguments.drive, Access::ReadDamaged, |store| {
        accept_damage(&store.damage()?, out);
        let mut damaged = 0;
        store.dump::<CommandError>(&arguments.which(), &mut |dumped| {
            damaged += u64::from(show(&dumped, arguments.raw, out)?);
            Ok(())
        })?;
        if damaged == 0 {
            return Ok(());
        }
        let shown = arguments.drive.display();
        let places = count(damaged, "place");
        fail!(Damaged, "{shown}: {places} in the database cannot be read or make no sense";
            "they are named above; `zonestore store fsck DRIVE` says what follows from them")
    })
}

/// Prints a record; returns whether it is damaged.
fn show(dumped: &Dumped<'_>, raw: bool, out: &mut Output) -> CommandResult<bool> {
    let mut line = Map::new();
    let (text, is_damaged) = match dumped {
        Dumped::Unreadable { behind, why } => {
            let behind = hex(behind);
            let text = format!("unreadable behind key {behind}: {why}");
            line.insert("unreadable_behind".into(), json!(behind));
            line.insert("why".into(), json!(why.to_string()));
            (text, true)
        }
        Dumped::Record {
            kind,
            key,
            value,
            name,
            said,
        } => {
            let kind = kind.unwrap_or("unknown");
            line.insert("kind".into(), json!(kind));
            let mut text = format!("{kind} ");
            for (what, bytes, fields, separator) in
                [("key", key, name, ": "), ("value", value, said, "")]
            {
                text.push_str(&match fields {
                    Some(fields) => words(fields),
                    None => format!("damaged {what} {}", hex(bytes)),
                });
                text.push_str(separator);
                line.insert(what.into(), json!(fields));
                if raw || fields.is_none() {
                    line.insert(format!("{what}_hex"), json!(hex(bytes)));
                }
            }
            if raw {
                text.push_str(&format!(" [{} = {}]", hex(key), hex(value)));
            }
            let why = "bytes that make no sense, as docs/format/store.md describes this kind";
            let is_damaged = name.is_none() || said.is_none();
            if is_damaged {
                line.insert("why".into(), json!(why));
            }
            (text, is_damaged)
        }
    };
    if out.is_json() {
        out.bytes(format!("{}\n", Value::Object(line)).as_bytes())?;
    } else {
        out.exact_line(format_args!("{}", text.trim_end()))?;
    }
    Ok(is_damaged)
}

fn hex(bytes: &[u8]) -> String {
    Name::from(bytes).hex()
}

/// Field names and values for people.
fn words(fields: &Map<String, Value>) -> String {
    let words = fields.iter().map(|(name, value)| {
        let shown = match (name.as_str(), value.as_u64()) {
            ("created_micros" | "modified_micros", Some(micros)) => utc(micros),
            _ => word(value),
        };
        let name = name.trim_end_matches("_micros").replace('_', " ");
        format!("{name} {shown}")
    });
    words.collect::<Vec<_>>().join(", ")
}

fn word(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => format!("{text:?}"),
        Value::Array(all) => {
            let all: Vec<String> = all.iter().map(word).collect();
            format!("[{}]", all.join("; "))
        }
        Value::Object(fields) => match fields.get("hex").and_then(Value::as_str) {
            Some(digits) if fields.len() == 1 => format!("0x{digits}"),
            _ => format!("({})", words(fields)),
        },
        other => other.to_string(),
    }
}
