//! Output of results on standard output: text for people, or one JSON value.
//!
//! Standard output carries results and nothing else; progress, questions and errors go to standard
//! error. A reader that goes away (`| head`) ends the command quietly.

use crate::wrapping::{columns, wrapped};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Arguments;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::marker::PhantomData;
use zone::shell::{hidden, quoted};

/// Writing to standard output failed.
#[derive(Debug, thiserror::Error)]
#[error("standard output: {0}")]
pub struct OutputError(pub io::Error);

/// Standard output, buffered. Errors are converted to the program's error type `E`.
pub struct Output<E> {
    json: bool,
    terminal: bool,
    /// Width of the terminal.
    columns: Option<usize>,
    to: BufWriter<io::Stdout>,
    /// Additional fields of the JSON value.
    more: Vec<(&'static str, Value)>,
    errors: PhantomData<E>,
}

impl<E: From<OutputError>> Output<E> {
    /// Output for people, or for programs (`json`).
    pub fn new(json: bool) -> Self {
        let terminal = io::stdout().is_terminal();
        Self {
            json,
            terminal,
            columns: if terminal { columns() } else { None },
            to: BufWriter::new(io::stdout()),
            more: Vec::new(),
            errors: PhantomData,
        }
    }

    /// Whether `--json` was given.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Adds a field to the JSON value, if the value is an object.
    pub fn add_field(&mut self, name: &'static str, value: impl Into<Value>) {
        self.more.push((name, value.into()));
    }

    /// A name for display. On a terminal, names with control characters, which could mislead it, are quoted as for a
    /// shell (as `ls` does). Names that are not UTF-8 are quoted everywhere.
    pub fn name<'a>(&self, name: &'a (impl AsRef<[u8]> + ?Sized)) -> Cow<'a, str> {
        match std::str::from_utf8(name.as_ref()) {
            Ok(text) if !self.terminal => Cow::Borrowed(text),
            _ => quoted(name.as_ref()),
        }
    }

    /// Prints a line for people; nothing with `--json`. On a terminal, a long line is wrapped between words.
    pub fn line(&mut self, text: Arguments<'_>) -> Result<(), E> {
        match self.columns {
            Some(columns) if !self.json => {
                let broken = wrapped(&text.to_string(), columns);
                self.exact_line(format_args!("{broken}"))
            }
            _ => self.exact_line(text),
        }
    }

    /// Prints a line for people that ends with a name or a path, and is not wrapped.
    pub fn exact_line(&mut self, text: Arguments<'_>) -> Result<(), E> {
        if self.json {
            return Ok(());
        }
        let done = match self.terminal {
            true => self.to.write_all(printable(&text.to_string()).as_bytes()),
            false => self.to.write_fmt(text),
        };
        let done = done.and_then(|()| self.to.write_all(b"\n"));
        done.map_err(failed)
    }

    /// Prints the result for programs; nothing without `--json`.
    pub fn value(&mut self, value: &impl Serialize) -> Result<(), E> {
        if self.json {
            let done = if self.more.is_empty() {
                serde_json::to_writer_pretty(&mut self.to, value)
            } else {
                serde_json::to_value(value).and_then(|mut value| {
                    if let Some(fields) = value.as_object_mut() {
                        let more = self.more.iter().cloned();
                        fields.extend(more.map(|(name, value)| (name.to_owned(), value)));
                    }
                    serde_json::to_writer_pretty(&mut self.to, &value)
                })
            };
            let done = done.map_err(io::Error::from);
            let done = done.and_then(|()| self.to.write_all(b"\n"));
            done.map_err(failed)?;
        }
        Ok(())
    }

    /// Prints names and values as two columns, for people.
    pub fn pairs(&mut self, pairs: &[(&str, String)]) -> Result<(), E> {
        let width = pairs
            .iter()
            .map(|(name, _)| name.chars().count())
            .max()
            .unwrap_or(0);
        for (name, value) in pairs {
            self.line(format_args!("{name:width$}  {value}"))?;
        }
        Ok(())
    }

    /// Prints a table for people. The first row is the head; columns not in `left` hold numbers and are aligned
    /// right. On a narrow terminal, cells are wrapped between words.
    pub fn table(&mut self, left: &[usize], rows: &[Vec<String>]) -> Result<(), E> {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING).add_rows(rows);
        if let Some(columns) = self.columns {
            table
                .set_content_arrangement(ContentArrangement::Dynamic)
                .set_width(columns.try_into().unwrap_or(u16::MAX));
        }
        let last = table.column_count().saturating_sub(1);
        for (number, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, if number == last { 0 } else { 2 }));
            if !left.contains(&number) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        self.exact_line(format_args!("{}", table.trim_fmt()))
    }

    /// Prints raw bytes, such as an object's content, with or without `--json`.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), E> {
        self.to.write_all(bytes).map_err(failed)
    }

    /// Drops what was printed since the last flush.
    pub fn discard(&mut self) {
        let buffer = std::mem::replace(&mut self.to, BufWriter::new(io::stdout()));
        _ = buffer.into_parts();
    }

    /// Flushes the buffer.
    pub fn flush(&mut self) -> Result<(), E> {
        self.to.flush().map_err(failed)
    }
}

/// Raw bytes; errors are [`OutputError`]s within [`io::Error`]s.
impl<E> Write for Output<E> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes);
        written.map_err(|error| io::Error::new(error.kind(), OutputError(error)))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn failed<E: From<OutputError>>(error: io::Error) -> E {
    OutputError(error).into()
}

/// Text that is safe for a terminal: control characters except line ends are replaced.
pub fn printable(text: &str) -> Cow<'_, str> {
    let misleads = |c: char| hidden(c) && c != '\n';
    if !text.contains(misleads) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| match misleads(c) {
        true => c.escape_default().to_string(),
        false => c.to_string(),
    };
    Cow::Owned(text.chars().map(shown).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_for_a_terminal_moves_no_cursor() {
        assert_eq!(printable("/a\u{1b}[2J\n  b\tc"), "/a\\u{1b}[2J\n  b\\tc");
        assert_eq!(printable("naïve: ok\n"), "naïve: ok\n");
    }
}
