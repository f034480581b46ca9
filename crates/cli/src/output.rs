//! Where results go: people's text or one JSON value on standard output.
//!
//! Standard output carries results and nothing else; progress, questions and errors go to standard
//! error. A reader that goes away (`| head`) ends the command quietly.

use crate::errors::CommandResult;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Arguments;
use std::io::{self, BufWriter, Write};

/// Standard output, buffered.
pub struct Output {
    json: bool,
    to: BufWriter<io::Stdout>,
}

impl Output {
    /// Output for people, or JSON for programs.
    pub fn new(json: bool) -> Self {
        Self {
            json,
            to: BufWriter::new(io::stdout()),
        }
    }

    /// Whether `--json` was given.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// One line for people; nothing under `--json`.
    pub fn line(&mut self, text: Arguments<'_>) -> CommandResult {
        if !self.json {
            self.to.write_fmt(text)?;
            self.to.write_all(b"\n")?;
        }
        Ok(())
    }

    /// The result for programs; nothing without `--json`.
    pub fn value(&mut self, value: &impl Serialize) -> CommandResult {
        if self.json {
            serde_json::to_writer_pretty(&mut self.to, value)?;
            self.to.write_all(b"\n")?;
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
    /// `left`) are aligned to the right.
    pub fn table(&mut self, left: &[usize], rows: &[Vec<String>]) -> CommandResult {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            rows.iter()
                .filter_map(|r| r.get(column))
                .map(|c| c.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let width = widths[column];
                if column > 0 {
                    line.push_str("  ");
                }
                line += &if left.contains(&column) {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                };
            }
            self.line(format_args!("{}", line.trim_end()))?;
        }
        Ok(())
    }

    /// What a check found, for people: how many errors of each kind, then the first in words.
    pub fn findings(
        &mut self,
        errors: &BTreeMap<String, u64>,
        details: &[String],
    ) -> CommandResult {
        for (kind, count) in errors {
            self.line(format_args!("{count:>8}  {kind}"))?;
        }
        for detail in details {
            self.line(format_args!("  {detail}"))?;
        }
        if errors.is_empty() {
            self.line(format_args!("no errors"))?;
        }
        Ok(())
    }

    /// Raw bytes, whatever `--json` says (an object's content).
    pub fn bytes(&mut self, bytes: &[u8]) -> CommandResult {
        Ok(self.to.write_all(bytes)?)
    }

    /// Hands everything to the reader now.
    pub fn flush(&mut self) -> CommandResult {
        Ok(self.to.flush()?)
    }
}
