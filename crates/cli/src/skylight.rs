//! `zonestore skylight`: what is inside a drive.

mod host;

use crate::args::SkylightArguments;
use crate::errors::{CommandError, CommandResult, Exit};
use crate::output::Output;
use crate::progress::Progress;
use crate::size::human;
use crate::time::length;
use drive_model::{BLOCK_BYTES, profile};
use serde_json::{Value, json};
use skylight::meaning::meaning;
use skylight::reading::{self, told_rows};
use skylight::report::{Row, advice, rows};
use skylight::target::facts::Facts;
use skylight::{Model, Options, Target, TargetError, examine, examine_for_figures, html};
use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::rc::Rc;

/// Looks into a model, a device or a file, or lists the models.
pub fn run(arguments: &SkylightArguments, out: &mut Output) -> CommandResult {
    let Some(name) = &arguments.target else {
        let names = models();
        for name in &names {
            out.line(format_args!("{name}"))?;
        }
        return out.value(&json!({ "models": names }));
    };
    let path = Path::new(name);
    let steps = Steps::default();
    if !models().contains(&name.as_str()) && (path.exists() || name.contains('/')) {
        let pause = steps.clone();
        let paused = Box::new(move |left: drive_model::Span| pause.idle(left.seconds()));
        let (mut target, facts) = host::open(arguments, path, paused)?;
        return look(arguments, &mut target, Some(&facts), steps, out);
    }
    let mut model = Model::named(name, arguments.seed).map_err(|error| unknown(&error))?;
    look(arguments, &mut model, None, steps, out)
}

/// Shows what is being done: the test, and how long the drive is left alone.
#[derive(Clone)]
struct Steps {
    progress: Rc<Progress>,
    step: Rc<RefCell<String>>,
}

impl Default for Steps {
    fn default() -> Self {
        Self {
            progress: Rc::new(Progress::steps("", None)),
            step: Rc::default(),
        }
    }
}

impl Steps {
    fn next(&self, what: &str) {
        self.progress.advance(1);
        self.progress.message(what.to_owned());
        self.step.replace(what.to_owned());
    }

    fn idle(&self, seconds: f64) {
        let step = self.step.borrow();
        let left = length(seconds);
        self.progress
            .message(format!("{step}: leaving it alone for {left}"));
    }
}

fn look(
    arguments: &SkylightArguments,
    target: &mut dyn Target,
    facts: Option<&Facts>,
    steps: Steps,
    out: &mut Output,
) -> CommandResult {
    let mut next = |what: &str| steps.next(what);
    let name = arguments.target.as_deref().unwrap_or_default();
    let mut page = None;
    let (rows, advice, unknown, mut value, result) = if arguments.read_only {
        let (found, result) = reading::read(target, arguments.seed, &mut next);
        let value = json!({ "readings": found });
        (
            reading::rows(&found),
            Vec::new(),
            found.unknown,
            value,
            result,
        )
    } else {
        let options = Options {
            quick: arguments.quick,
            seed: arguments.seed,
        };
        let (found, seen, result) = match &arguments.html {
            Some(_) => examine_for_figures(target, options, &mut next),
            None => examine(target, options, &mut next),
        };
        page = (arguments.html.as_ref())
            .map(|file| (file, html::page(name, target.blocks(), &found, &seen)));
        let advice = advice(&found, target.blocks());
        let mut all = told_rows(&target.told());
        all.extend(rows(&found));
        let value = json!({
            "findings": found, "advice": advice, "meaning": meaning(&found, target.blocks()),
        });
        (all, advice, found.unknown, value, result)
    };
    let spent = target.now().since(drive_model::Time::START).seconds();
    drop(steps);
    let head = vec!["property".into(), name.to_owned(), "sure".into()];
    let size = measured("Size", human(target.blocks() * BLOCK_BYTES));
    let model = facts.and_then(|facts| facts.model.clone());
    let known = [
        model.map(|model| measured("Model", model)),
        facts.map(|_| size),
    ];
    let known = known.into_iter().flatten();
    let table: Vec<Vec<String>> = std::iter::once(head)
        .chain(known.chain(rows).map(|row| cells(&row)))
        .collect();
    out.table(&[0, 1], &table)?;
    let mut lines: Vec<String> = advice;
    lines.extend(unknown.iter().map(|what| format!("Cannot tell {what}.")));
    if !lines.is_empty() {
        out.line(format_args!(""))?;
    }
    for line in &lines {
        out.line(format_args!("- {line}"))?;
    }
    if let Err(error) = &result {
        out.line(format_args!("\nNot all was done: {error}."))?;
    }
    let spent = length(spent);
    out.line(format_args!("\n{spent} of the drive's time"))?;
    if let Value::Object(fields) = &mut value {
        fields.insert("target".into(), json!(name));
        fields.insert("device".into(), json!(facts));
        let stopped = result.as_ref().err().map(TargetError::to_string);
        fields.insert("stopped".into(), json!(stopped));
    }
    out.value(&value)?;
    if let Some((file, page)) = page {
        fs::write(file, page).map_err(|error| {
            let message = format!("cannot write {}: {error}", file.display());
            CommandError::new(Exit::Failed, message)
        })?;
    }
    // What was found until then is printed; a time that was given is no failure.
    match result {
        Ok(()) | Err(TargetError::TimeOver) => Ok(()),
        Err(error) => {
            out.flush()?;
            Err(CommandError::new(Exit::Failed, error).context(name))
        }
    }
}

fn measured(property: &'static str, value: String) -> Row {
    Row {
        property,
        value,
        confidence: None,
    }
}

fn cells(row: &Row) -> Vec<String> {
    let sure = row.confidence.map(|c| format!("{:.0} %", c * 100.0));
    vec![
        row.property.to_owned(),
        row.value.clone(),
        sure.unwrap_or_default(),
    ]
}

/// Those that a host may write to in any order, and those that say why not.
fn models() -> Vec<&'static str> {
    let mut names = profile::all_names();
    names.retain(|name| *name != "caveat-scriptor");
    names
}

fn unknown(error: &profile::ProfileError) -> CommandError {
    CommandError::new(Exit::NotFound, error).hint("zonestore skylight lists the models")
}
