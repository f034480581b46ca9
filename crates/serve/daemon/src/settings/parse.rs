//! Parses a configuration file. Unknown names are refused, with the line and the most similar known name.

use super::sections::{File, SECTIONS};
use std::ops::Range;
use thiserror::Error;
use toml::de::{DeTable, DeValue};

/// Least similarity of a name that is suggested, from 0 to 1.
const ALIKE: f64 = 0.6;

/// An error in a configuration file, and its line.
#[derive(Debug, PartialEq, Eq, Error)]
#[error("line {line}: {what}")]
pub struct SyntaxError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

/// Parses the text of a configuration file.
///
/// # Errors
/// The text is not TOML, or has an unknown name or a value that is not valid for its field. Errors never show a
/// secret.
pub fn parse(text: &str) -> Result<File, SyntaxError> {
    let table = DeTable::parse(text).map_err(|error| located(text, &error))?;
    check_names(text, "", table.get_ref())?;
    toml::from_str(text).map_err(|error| located(text, &error))
}

fn located(text: &str, error: &toml::de::Error) -> SyntaxError {
    SyntaxError {
        line: line_of(text, error.span()),
        what: error.message().lines().collect::<Vec<_>>().join(", "),
    }
}

fn line_of(text: &str, span: Option<Range<usize>>) -> usize {
    let before = text.as_bytes().get(..span.map_or(0, |span| span.start));
    1 + before
        .unwrap_or_default()
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
}

/// All names that may occur in the section of this path.
fn names(path: &str) -> Vec<&'static str> {
    let below = |section: &'static str| match path {
        "" => Some(section),
        path => section.strip_prefix(path)?.strip_prefix('.'),
    };
    let sections = SECTIONS.iter().filter_map(|section| below(section.path));
    let sections = sections.map(|rest| rest.split('.').next().unwrap_or(rest));
    let own = SECTIONS.iter().filter(|section| section.path == path);
    let mut names: Vec<_> = own
        .flat_map(|section| section.fields.iter().map(|field| field.name))
        .chain(sections)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn check_names(text: &str, path: &str, table: &DeTable<'_>) -> Result<(), SyntaxError> {
    let known = names(path);
    for (name, value) in table {
        let span = name.span();
        let name = name.get_ref().as_ref();
        if !known.contains(&name) {
            return Err(SyntaxError {
                line: line_of(text, Some(span)),
                what: unknown(path, name, &known),
            });
        }
        if is_path(path, name) && value.get_ref().as_str() == Some("") {
            return Err(SyntaxError {
                line: line_of(text, Some(value.span())),
                what: format!("[{path}] {name} is empty: name a file, or leave {name} out"),
            });
        }
        let below = match path {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        check_below(text, &below, value.get_ref())?;
    }
    Ok(())
}

/// Whether this field is a path, for which an empty text is an error.
fn is_path(section: &str, field: &str) -> bool {
    let section = SECTIONS.iter().find(|known| known.path == section);
    let mut fields = section.into_iter().flat_map(|section| section.fields);
    fields.any(|known| known.name == field && known.kind.starts_with("path"))
}

fn check_below(text: &str, path: &str, value: &DeValue<'_>) -> Result<(), SyntaxError> {
    match value {
        DeValue::Table(table) => check_names(text, path, table),
        DeValue::Array(values) => values
            .iter()
            .try_for_each(|value| check_below(text, path, value.get_ref())),
        _ => Ok(()),
    }
}

fn unknown(path: &str, name: &str, known: &[&str]) -> String {
    let place = match path {
        "" => "a configuration".to_owned(),
        path => format!("[{path}]"),
    };
    let alike = |known: &&&str| strsim::normalized_damerau_levenshtein(name, known);
    let nearest = known.iter().max_by(|a, b| alike(a).total_cmp(&alike(b)));
    match nearest.filter(|nearest| alike(nearest) > ALIKE) {
        Some(nearest) => format!("{place} has no {name:?}; is {nearest:?} meant?"),
        None => format!("{place} has no {name:?}; there are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_name_that_is_not_known_is_refused_with_the_nearest() {
        assert_eq!(
            wrong("[serve]\ns3 = \"a:1\"\nclean_pase = \"full\"\n"),
            "line 3: [serve] has no \"clean_pase\"; is \"clean_pace\" meant?"
        );
        assert_eq!(
            wrong("\n[tsl]\n"),
            "line 2: a configuration has no \"tsl\"; is \"tls\" meant?"
        );
        assert_eq!(
            wrong("[limits.kye]\n"),
            "line 1: [limits] has no \"kye\"; is \"key\" meant?"
        );
        let text = "[[key]]\naccess_key = \"a\"\nrights = [\n  { buckets = \"b\", may = [] },\n]";
        assert_eq!(
            wrong(text),
            "line 4: [key.rights] has no \"buckets\"; is \"bucket\" meant?"
        );
        assert!(wrong("xyz = 1").contains("there are drive, key, limits"));
    }

    #[test]
    fn a_value_that_is_none_is_refused_with_its_line() {
        assert!(wrong("[serve]\n\nexit_on_failure = 1").starts_with("line 3: "));
        assert!(wrong("[serve]\nclean_hours = \"noon\"").starts_with("line 2: "));
        assert!(wrong("[[key]]\nrights = [{ bucket = \"a*b\" }]").contains("and a star"));
        assert!(wrong("[serve]\nserve").starts_with("line 2: "));
        assert!(wrong("[tls]\nkey = 1\nkey = 2").starts_with("line 3: "));
    }

    #[test]
    fn an_empty_path_is_none() {
        assert_eq!(
            wrong("[log]\n\naccess = \"\""),
            "line 3: [log] access is empty: name a file, or leave access out"
        );
        let paths = SECTIONS.iter().flat_map(|section| {
            let paths = section
                .fields
                .iter()
                .filter(|f| is_path(section.path, f.name));
            paths.map(|field| (section.path, field.name))
        });
        let paths: Vec<_> = paths.collect();
        assert_eq!(paths.len(), 7, "{paths:?}");
        for (section, field) in paths {
            let header = match section {
                "key" => "[[key]]".to_owned(),
                section => format!("[{section}]"),
            };
            let said = wrong(&format!("{header}\n{field} = \"\""));
            assert!(said.contains(&format!("{field} is empty")), "{said}");
        }
    }

    #[test]
    fn no_error_shows_a_secret() {
        for text in [
            "secret_key = 12345678",
            "secret_key = [\"12345678\"]",
            "secret_key = 1234_5678_",
        ] {
            let error = parse(&format!("[[key]]\n{text}")).unwrap_err();
            assert!(!error.to_string().contains("5678"), "{error}");
            assert_eq!(error.line, 2);
        }
        let shown = format!("{:?}", parse("[[key]]\nsecret_key = \"12345678\"").unwrap());
        assert!(!shown.contains("5678"), "{shown}");
    }
}
