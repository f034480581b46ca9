//! Parsing of profiles from TOML.

use crate::numbers;
use crate::profile_error::ProfileError;

/// Parses a profile of any kind, and checks the range of each number.
pub(crate) fn parse<P: serde::de::DeserializeOwned>(text: &str) -> Result<P, ProfileError> {
    let table: toml::Table = toml::from_str(text).map_err(|error| syntax(text, &error, None))?;
    numbers::check(&table)?;
    toml::from_str(text).map_err(|error| {
        let culprit = culprit::<P>(&table, table_of(text, &error));
        syntax(text, &error, culprit)
    })
}

fn before<'a>(text: &'a str, error: &toml::de::Error) -> &'a str {
    let end = error.span().map_or(0, |span| span.start);
    text.get(..end).unwrap_or_default()
}

/// The parser's message, with the line, and with the field if the message does not name it.
fn syntax(text: &str, error: &toml::de::Error, field: Option<String>) -> ProfileError {
    let line = before(text, error).matches('\n').count() + 1;
    let field = field.map_or_else(String::new, |field| format!("{field}: "));
    let message = error.message().replace('\n', " ");
    ProfileError::Syntax {
        reason: format!("line {line}: {field}{message}"),
    }
}

/// The table in which the parser stopped; `None` before the first table.
fn table_of<'a>(text: &'a str, error: &toml::de::Error) -> Option<&'a str> {
    let lines = before(text, error).matches('\n').count() + 1;
    let headers = text.lines().take(lines).filter_map(|line| {
        let name = line.trim().strip_prefix('[')?;
        name.split_once(']').map(|(name, _)| name)
    });
    headers.last()
}

/// The field whose value has the wrong type: without it, the parser's message is a different one.
fn culprit<P: serde::de::DeserializeOwned>(
    table: &toml::Table,
    within: Option<&str>,
) -> Option<String> {
    let message = |table: toml::Table| {
        let read: Result<P, toml::de::Error> = toml::Value::Table(table).try_into();
        read.err().map(|error| error.message().to_owned())
    };
    let said = message(table.clone()).filter(|said| !said.contains(" field "))?;
    let fields = numbers::leaves(table).into_iter().map(|(path, _)| path);
    let here = |path: &String| path.rsplit_once('.').map(|(name, _)| name) == within;
    let mut fields: Vec<String> = fields.filter(here).collect();
    // The field `kind` comes last: without it, every table fails whatever else is wrong.
    fields.sort_by_key(|path| path.ends_with(".kind"));
    fields.into_iter().find(|path| {
        let other = message(numbers::without(table, path));
        other.as_ref() != Some(&said)
    })
}

/// The text of a name in a list of built-in profiles.
pub(crate) fn text(
    all: &[(&'static str, &'static str)],
    name: &str,
) -> Result<&'static str, ProfileError> {
    let found = all.iter().find(|(known, _)| *known == name);
    let unknown = || ProfileError::Unknown {
        name: name.into(),
        known: all.iter().map(|(known, _)| *known).collect(),
    };
    found.map(|(_, text)| *text).ok_or_else(unknown)
}
