//! Where results go: people's text or one JSON value on standard output.
//!
//! Standard output carries results and nothing else; progress, questions and errors go to standard
//! error. A reader that goes away (`| head`) ends the command quietly.

use crate::errors::{CommandError, CommandResult};
use crate::wrapping::{columns, wrapped};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{Arguments, Display};
use std::io::{self, BufWriter, IsTerminal, Write};

/// Standard output, buffered.
pub struct Output {
    json: bool,
    terminal: bool,
    /// Of the terminal.
    columns: Option<usize>,
    to: BufWriter<io::Stdout>,
    /// What is missing in front of which the answer was looked for.
    damage: Vec<String>,
}

impl Output {
    /// Output for people, or JSON for programs.
    pub fn new(json: bool) -> Self {
        let terminal = io::stdout().is_terminal();
        Self {
            json,
            terminal,
            columns: if terminal { columns() } else { None },
            to: BufWriter::new(io::stdout()),
            damage: Vec::new(),
        }
    }

    /// Whether `--json` was given.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// The answer comes from a drive of which this is missing, and that was accepted: says so on standard
    /// error, and in the value for programs.
    pub fn accept_damage(&mut self, missing: &[impl Display]) {
        for what in missing {
            eprintln!("zonestore: damage accepted: {what}");
            self.damage.push(what.to_string());
        }
        if !missing.is_empty() {
            eprintln!("zonestore: what was stored behind it is missing in this answer");
        }
    }

    /// The name of an object or collection as it may be shown: on a terminal, which control
    /// characters could mislead, such names are quoted as a shell takes them (as `ls` does).
    pub fn name<'a>(&self, name: &'a str) -> Cow<'a, str> {
        if self.terminal {
            quoted(name)
        } else {
            Cow::Borrowed(name)
        }
    }

    /// One line for people; nothing under `--json`. On a terminal, one that is too long is broken
    /// between words.
    pub fn line(&mut self, text: Arguments<'_>) -> CommandResult {
        match self.columns {
            Some(columns) if !self.json => {
                let broken = wrapped(&text.to_string(), columns);
                self.exact_line(format_args!("{broken}"))
            }
            _ => self.exact_line(text),
        }
    }

    /// One line for people that ends with a name or a path, which is not to be broken.
    pub fn exact_line(&mut self, text: Arguments<'_>) -> CommandResult {
        if !self.json {
            let done = self
                .to
                .write_fmt(text)
                .and_then(|()| self.to.write_all(b"\n"));
            done.map_err(CommandError::output)?;
        }
        Ok(())
    }

    /// The result for programs; nothing without `--json`.
    pub fn value(&mut self, value: &impl Serialize) -> CommandResult {
        if self.json {
            let done = if self.damage.is_empty() {
                serde_json::to_writer_pretty(&mut self.to, value)
            } else {
                let mut value = serde_json::to_value(value)?;
                if let Some(fields) = value.as_object_mut() {
                    fields.insert("damage_accepted".to_owned(), self.damage.clone().into());
                }
                serde_json::to_writer_pretty(&mut self.to, &value)
            };
            let done = done.map_err(io::Error::from);
            let done = done.and_then(|()| self.to.write_all(b"\n"));
            done.map_err(CommandError::output)?;
        }
        Ok(())
    }

    /// Names and values under each other, for people.
    pub fn pairs(&mut self, pairs: &[(&str, String)]) -> CommandResult {
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

    /// A table for people: the first row is the head, numbers (everything but the columns in
    /// `left`) are aligned to the right. On a terminal that is too narrow, cells are broken between words.
    pub fn table(&mut self, left: &[usize], rows: &[Vec<String>]) -> CommandResult {
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

    /// What a check found, for people: how many errors of each kind, then the first in words. Without
    /// `deep` it has not looked at data.
    pub fn findings(
        &mut self,
        errors: &BTreeMap<String, u64>,
        details: &[String],
        deep: bool,
    ) -> CommandResult {
        for (kind, count) in errors {
            self.line(format_args!("{count:>8}  {kind}"))?;
        }
        for detail in details {
            self.line(format_args!("  {detail}"))?;
        }
        match (errors.is_empty(), deep) {
            (true, true) => self.line(format_args!("no errors"))?,
            (true, false) => self.line(format_args!(
                "no errors in the metadata; data was not read (--deep does)"
            ))?,
            (false, _) => {}
        }
        Ok(())
    }

    /// Raw bytes, whatever `--json` says (an object's content).
    pub fn bytes(&mut self, bytes: &[u8]) -> CommandResult {
        self.to.write_all(bytes).map_err(CommandError::output)
    }

    /// Hands everything to the reader now.
    pub fn flush(&mut self) -> CommandResult {
        self.to.flush().map_err(CommandError::output)
    }
}

/// A name without anything that moves a cursor or turns the order of letters: `$'a\nb'`.
fn quoted(name: &str) -> Cow<'_, str> {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}')
            || c == '\u{feff}'
    };
    // A name that looks quoted already is quoted as well, so that the two cannot be mistaken.
    if !name.contains(hidden) && !name.starts_with("$'") {
        return Cow::Borrowed(name);
    }
    let mut text = String::from("$'");
    for c in name.chars() {
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
    text.push('\'');
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_mislead_are_quoted() {
        for plain in ["a", "a b", "2016/smr.pdf", "naïve’s \"x\"", ""] {
            assert_eq!(quoted(plain), plain);
        }
        assert_eq!(quoted("a\nb"), r"$'a\nb'");
        assert_eq!(quoted("\u{1b}[31mit's\\"), r"$'\x1b[31mit\'s\\'");
        assert_eq!(quoted("a\u{202e}b"), r"$'a\u202eb'");
        assert_eq!(quoted("a\u{85}b"), r"$'a\u0085b'");
        assert_eq!(quoted("$'a'"), r"$'$\'a\''");
    }
}
