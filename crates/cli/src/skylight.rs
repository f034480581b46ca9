//! `zonestore skylight`: what is inside a drive.

mod host;

use crate::args::SkylightArguments;
use crate::errors::{CommandError, CommandResult, Exit, strip_os_error};
use crate::leave;
use crate::local_file;
use crate::output::Output;
use drive_model::{AnyProfile, BLOCK_BYTES, Class, Span, Time, profile};
use serde_json::{Value, json};
use skylight::meaning::meaning;
use skylight::reading::{self, told_rows};
use skylight::report::{Row, advice, rows};
use skylight::target::facts::Facts;
use skylight::target::limits::{Limits, Watch};
use skylight::{
    Model, Options, Target, TargetError, Unfinished, examine, examine_for_figures, html,
};
use std::cell::RefCell;
use std::io::Write;
use std::path::Path;
use std::rc::Rc;
use terminal::{Interrupt, Progress, WholeFile, human, length};

/// Looks into a model, a device or a file, or lists the models.
pub fn run(arguments: &SkylightArguments, out: &mut Output) -> CommandResult {
    let Some(name) = &arguments.target else {
        let names = models();
        for name in &names {
            out.line(format_args!("{name}"))?;
        }
        return out.value(&json!({ "models": names }));
    };
    // Said now, not after hours of work.
    let page = arguments.html.as_deref().map(begin).transpose()?;
    let steps = Steps::default();
    if let Some(profile) = model(name)? {
        let seed = arguments.seed;
        let model = Model::of(move || profile.model(seed));
        let model = model.map_err(|error| CommandError::from(error).context(name))?;
        let mut model = model
            .with_limits(limits(arguments)?)
            .with_watch(steps.watch());
        return look(arguments, &mut model, None, page, steps, out);
    }
    let (mut target, facts) = host::open(arguments, Path::new(name), steps.watch())?;
    look(arguments, &mut target, Some(&facts), page, steps, out)
}

/// When to stop. Ctrl-C is a wish from here on, so nobody may be asked anything behind this.
fn limits(arguments: &SkylightArguments) -> CommandResult<Limits> {
    let budget = arguments.budget.as_ref();
    Ok(Limits {
        budget: budget.map(|budget| Span::from_seconds(budget.0 as f64)),
        interrupted: Interrupt::listen()?.flag(),
    })
}

/// The profile that `name` means: one that is built in, or the text of a file that ends in `.toml`, which is
/// never taken for a drive. Nothing if it leads to a device or a file.
fn model(name: &str) -> CommandResult<Option<AnyProfile>> {
    let path = Path::new(name);
    let is_profile = |path: &Path| path.extension().is_some_and(|ending| ending == "toml");
    let real = path.canonicalize();
    let profile = if profile::all_names().contains(&name) {
        AnyProfile::named(name).map_err(|error| unknown(&error))?
    } else if is_profile(path) || real.is_ok_and(|real| is_profile(&real)) {
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| CommandError::file(path, &error))?;
        AnyProfile::parse(text).map_err(|error| CommandError::from(error).context(name))?
    } else if path.exists() || name.contains('/') {
        return Ok(None);
    } else {
        AnyProfile::named(name).map_err(|error| unknown(&error))?
    };
    if profile.class() == Class::CaveatScriptor {
        let what = format_args!(
            "{name}: a Caveat-Scriptor disk, where a write damages what lies behind it, is none of the \
             kinds that are told apart"
        );
        return Err(CommandError::new(Exit::Usage, what)
            .hint("zonestore skylight lists the models that can be looked into"));
    }
    Ok(Some(profile))
}

/// A page that can be written.
fn begin(page: &Path) -> CommandResult<WholeFile> {
    local_file::create(page).map_err(not_written)
}

fn not_written(error: CommandError) -> CommandError {
    error.context("cannot write the page")
}

/// Shows what is being done: the test, how much of the drive's time is over, and how long it is left
/// alone. Nothing is shown before the first.
#[derive(Clone, Default)]
struct Steps(Rc<RefCell<Shown>>);

#[derive(Default)]
struct Shown {
    progress: Option<Progress>,
    step: String,
    now: f64,
}

impl Steps {
    fn next(&self, what: &str) {
        let mut shown = self.0.borrow_mut();
        what.clone_into(&mut shown.step);
        let progress = || Progress::words("");
        shown.progress.get_or_insert_with(progress);
        shown.show(None);
    }

    fn watch(&self) -> Watch {
        let shown = self.0.clone();
        Box::new(move |now, left| {
            let mut shown = shown.borrow_mut();
            shown.now = now.since(Time::START).seconds();
            shown.show(left);
        })
    }

    /// Nothing is shown any more; the step that was the last.
    fn end(&self) -> String {
        let mut shown = self.0.borrow_mut();
        shown.progress = None;
        std::mem::take(&mut shown.step)
    }
}

impl Shown {
    fn show(&self, left: Option<Span>) {
        let Some(progress) = &self.progress else {
            return;
        };
        let (step, now) = (&self.step, length(self.now));
        let left = left.filter(|left| left.seconds() >= 1.0);
        let left = left.map(|left| format!(", leaving it alone for {}", length(left.seconds())));
        let left = left.unwrap_or_default();
        progress.message(format!("{step} · {now} of the drive's time{left}"));
    }
}

/// What a look has brought, ready to be printed.
struct Told {
    rows: Vec<Row>,
    advice: Vec<String>,
    unknown: Vec<String>,
    value: Value,
    page: Option<String>,
    unfinished: Option<Unfinished>,
    result: Result<(), TargetError>,
}

/// The reason in one line, if there is one.
fn reason(result: &Result<(), TargetError>) -> Option<String> {
    let error = result.as_ref().err();
    error.map(|error| strip_os_error(&error.to_string()))
}

fn read(arguments: &SkylightArguments, target: &mut dyn Target, steps: &Steps) -> Told {
    let (found, result) = reading::read(target, arguments.seed, &mut |what| steps.next(what));
    steps.end();
    Told {
        rows: reading::rows(&found),
        advice: Vec::new(),
        value: json!({ "readings": found }),
        unknown: found.unknown,
        page: None,
        unfinished: None,
        result,
    }
}

fn test(arguments: &SkylightArguments, target: &mut dyn Target, steps: &Steps) -> Told {
    let options = Options {
        quick: arguments.quick,
        seed: arguments.seed,
    };
    let mut next = |what: &str| steps.next(what);
    let figures = arguments.html.is_some();
    let (found, seen, result) = if figures {
        examine_for_figures(target, options, &mut next)
    } else {
        examine(target, options, &mut next)
    };
    let step = steps.end();
    let unfinished = reason(&result)
        .map(|reason| Unfinished::new(reason, &step, &found, figures, arguments.quick));
    let name = arguments.target.as_deref().unwrap_or_default();
    let blocks = target.blocks();
    let page = figures.then(|| html::page(name, blocks, &found, &seen, unfinished.as_ref()));
    let advice = advice(&found, blocks);
    let mut all = told_rows(&target.told());
    all.extend(rows(&found));
    Told {
        rows: all,
        value: json!({
            "findings": found, "advice": advice, "meaning": meaning(&found, target.blocks()),
        }),
        advice,
        unknown: found.unknown,
        page,
        unfinished,
        result,
    }
}

fn look(
    arguments: &SkylightArguments,
    target: &mut dyn Target,
    facts: Option<&Facts>,
    page: Option<WholeFile>,
    steps: Steps,
    out: &mut Output,
) -> CommandResult {
    let name = arguments.target.as_deref().unwrap_or_default();
    let mut told = if arguments.read_only {
        read(arguments, target, &steps)
    } else {
        test(arguments, target, &steps)
    };
    drop(steps);
    let spent = target.now().since(Time::START).seconds();
    let stopped = reason(&told.result);
    let head = vec!["property".into(), "sure".into(), name.to_owned()];
    let size = measured("Size", human(target.blocks() * BLOCK_BYTES));
    let model = facts.and_then(|facts| facts.model.clone());
    let known = [
        model.map(|model| measured("Model", model)),
        facts.map(|_| size),
    ];
    let known = known.into_iter().flatten();
    let table: Vec<Vec<String>> = std::iter::once(head)
        .chain(known.chain(told.rows).map(|row| cells(&row)))
        .collect();
    out.table(&[0, 2], &table)?;
    let mut lines: Vec<String> = told.advice;
    lines.extend((told.unknown.iter()).map(|what| format!("Cannot tell {what}.")));
    if !lines.is_empty() {
        out.line(format_args!(""))?;
    }
    for line in &lines {
        out.line(format_args!("- {line}"))?;
    }
    if let Some(why) = &stopped {
        out.line(format_args!("\nNot all was done: {why}."))?;
    }
    let missing = told.unfinished.map(|unfinished| unfinished.missing);
    if let Some(missing) = &missing {
        let missing = missing.join("; ");
        out.line(format_args!("Missing, or not to the end: {missing}."))?;
    }
    let spent = length(spent);
    out.line(format_args!("\n{spent} of the drive's time"))?;
    if let Value::Object(fields) = &mut told.value {
        fields.insert("target".into(), json!(name));
        fields.insert("device".into(), json!(facts));
        fields.insert("stopped".into(), json!(stopped));
        fields.insert("missing".into(), json!(missing.unwrap_or_default()));
    }
    out.value(&told.value)?;
    if let (Some(mut file), Some(text)) = (page, told.page) {
        let written = file.write_all(text.as_bytes());
        let written = written.map_err(CommandError::from);
        let written = written.and_then(|()| Ok(file.publish()?));
        written.map_err(not_written)?;
    }
    // What was found until then is printed; a time that was given is no failure.
    match (told.result, stopped) {
        (Ok(()) | Err(TargetError::TimeOver), _) | (_, None) => Ok(()),
        (Err(error), Some(why)) => {
            out.flush()?;
            let failed = CommandError::new(Exit::Failed, why).context(name);
            // Its thread never comes back, and whoever waits for it never either.
            if matches!(error, TargetError::Stuck { .. }) {
                leave(&failed);
            }
            Err(failed)
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
        sure.unwrap_or_default(),
        row.value.clone(),
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
