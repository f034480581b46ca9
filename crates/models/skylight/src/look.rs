//! A whole examination of a drive: the options, and a report of the findings.

use crate::examine::{Options, examine, examine_for_figures};
use crate::finding::Findings;
use crate::html;
use crate::meaning::{Meaning, meaning};
use crate::reading::{self, Readings, told_rows};
use crate::report::{Row, advice, rows};
use crate::step::Unfinished;
use crate::target::{Target, TargetError};
use drive_model::Time;
use serde::Serialize;

/// Options of an examination.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Name of the drive on the page.
    pub name: &'a str,
    /// Uses only tests that do not write.
    pub read_only: bool,
    /// Also measures what only the figures of a page need.
    pub page: bool,
    /// Options of the tests.
    pub options: Options,
}

/// Result of an examination.
pub struct Looked {
    /// The table.
    pub rows: Vec<Row>,
    /// Advice on the use of such a drive.
    pub advice: Vec<String>,
    /// What could not be determined, and why.
    pub unknown: Vec<String>,
    /// The findings for programs.
    pub value: Value,
    /// The findings as an HTML page, if requested.
    pub page: Option<String>,
    /// Steps that are missing or incomplete; `None` if the drive was only read.
    pub missing: Option<Vec<&'static str>>,
    /// Seconds of the drive's time.
    pub seconds: f64,
    /// Why it ended early, in words.
    pub stopped: Option<String>,
    /// Why it ended early.
    pub result: Result<(), TargetError>,
}

impl Looked {
    /// The table of a drive, with a head, after the rows that were `known` before.
    pub fn table(&self, drive: &str, known: impl Iterator<Item = Row>) -> Vec<Vec<String>> {
        let head = vec!["property".into(), "sure".into(), drive.to_owned()];
        let rows = known.chain(self.rows.iter().cloned());
        std::iter::once(head)
            .chain(rows.map(|row| row.cells()))
            .collect()
    }

    /// Lines of text for what is not in the table.
    pub fn lines(&self) -> Vec<String> {
        let unknown = self.unknown.iter();
        let unknown = unknown.map(|what| format!("Cannot tell {what}."));
        let all = self.advice.iter().cloned().chain(unknown);
        let mut lines: Vec<_> = all.map(|line| format!("- {line}")).collect();
        if !lines.is_empty() {
            lines.insert(0, String::new());
        }
        let stopped = self.stopped.iter();
        lines.extend(stopped.map(|why| format!("\nNot all was done: {why}.")));
        let missing = self.missing.iter().map(|missing| missing.join("; "));
        lines.extend(missing.map(|missing| format!("Missing, or not to the end: {missing}.")));
        lines
    }
}

/// The findings, for programs.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Value {
    /// By reading.
    Read {
        /// What was found.
        readings: Readings,
    },
    /// By tests.
    Tested {
        /// What was found.
        findings: Box<Findings>,
        /// What to do with such a drive.
        advice: Vec<String>,
        /// What the findings mean for it.
        meaning: Meaning,
    },
}

/// Examines a drive, and tells `step` the next step. If the target stops answering, the findings up to then are kept.
pub fn look(target: &mut dyn Target, asked: &Asked<'_>, step: &mut dyn FnMut(&str)) -> Looked {
    let mut looked = if asked.read_only {
        read(target, asked, step)
    } else {
        test(target, asked, step)
    };
    looked.seconds = target.now().since(Time::START).seconds();
    looked
}

/// The reason in words, without the number that Rust appends to the system's message.
fn reason(result: &Result<(), TargetError>) -> Option<String> {
    let text = result.as_ref().err()?.to_string();
    let words = text.split(" (os error").next();
    Some(words.unwrap_or(&text).to_owned())
}

fn read(target: &mut dyn Target, asked: &Asked<'_>, step: &mut dyn FnMut(&str)) -> Looked {
    let (found, result) = reading::read(target, asked.options.seed, step);
    Looked {
        rows: reading::rows(&found),
        advice: Vec::new(),
        unknown: found.unknown.clone(),
        value: Value::Read { readings: found },
        page: None,
        missing: None,
        seconds: 0.0,
        stopped: reason(&result),
        result,
    }
}

fn test(target: &mut dyn Target, asked: &Asked<'_>, step: &mut dyn FnMut(&str)) -> Looked {
    let (options, figures) = (asked.options, asked.page);
    let mut last = String::new();
    let mut next = |what: &str| {
        what.clone_into(&mut last);
        step(what);
    };
    let (found, seen, result) = if figures {
        examine_for_figures(target, options, &mut next)
    } else {
        examine(target, options, &mut next)
    };
    let stopped = reason(&result);
    let unfinished = stopped.clone();
    let unfinished =
        unfinished.map(|reason| Unfinished::new(reason, &last, &found, figures, options.quick));
    let blocks = target.blocks();
    let page = figures.then(|| html::page(asked.name, blocks, &found, &seen, unfinished.as_ref()));
    let advice = advice(&found, blocks);
    let mut all = told_rows(&target.told());
    all.extend(rows(&found));
    Looked {
        rows: all,
        advice: advice.clone(),
        unknown: found.unknown.clone(),
        value: Value::Tested {
            meaning: meaning(&found, blocks),
            findings: Box::new(found),
            advice,
        },
        page,
        missing: unfinished.map(|unfinished| unfinished.missing),
        seconds: 0.0,
        stopped,
        result,
    }
}
