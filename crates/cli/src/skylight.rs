//! `zonestore skylight`: what is inside a drive.

mod host;

use crate::args::SkylightArguments;
use crate::errors::{CommandError, CommandResult, Exit, fail};
use crate::leave;
use crate::local_file;
use crate::output::Output;
use drive_model::{AnyProfile, BLOCK_BYTES, Class, Span, Time, profile};
use serde_json::json;
use skylight::report::Row;
use skylight::target::facts::Facts;
use skylight::target::limits::{Limits, Watch};
use skylight::{Asked, Model, Options, Target, TargetError};
use std::cell::RefCell;
use std::io::Write;
use std::path::Path;
use std::rc::Rc;
use terminal::{Interrupt, Progress, WholeFile, human, length};

const MODELS: &str = "zonestore skylight lists the models";

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
    let is_known = profile::all_names().contains(&name);
    let profile =
        if !is_known && (is_profile(path) || path.canonicalize().is_ok_and(|p| is_profile(&p))) {
            let text = std::fs::read_to_string(path);
            let text = text.map_err(|error| CommandError::file(path, &error))?;
            AnyProfile::parse(text).map_err(|error| CommandError::from(error).context(name))?
        } else if !is_known && (path.exists() || name.contains('/')) {
            return Ok(None);
        } else {
            let named = AnyProfile::named(name);
            named.map_err(|error| CommandError::new(Exit::NotFound, error).hint(MODELS))?
        };
    if profile.class() == Class::CaveatScriptor {
        return fail!(
            Usage, "{name}: a Caveat-Scriptor disk, where a write damages what lies behind it, is none of \
                the kinds that are told apart";
            "{MODELS} that can be looked into"
        );
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

    /// Nothing is shown any more.
    fn end(&self) {
        self.0.borrow_mut().progress = None;
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

fn look(
    arguments: &SkylightArguments,
    target: &mut dyn Target,
    facts: Option<&Facts>,
    page: Option<WholeFile>,
    steps: Steps,
    out: &mut Output,
) -> CommandResult {
    let name = arguments.target.as_deref().unwrap_or_default();
    let asked = Asked {
        name,
        read_only: arguments.read_only,
        page: arguments.html.is_some(),
        options: Options {
            quick: arguments.quick,
            seed: arguments.seed,
        },
    };
    let found = skylight::look(target, &asked, &mut |what| steps.next(what));
    steps.end();
    let head = vec!["property".into(), "sure".into(), name.to_owned()];
    let size = Row::known("Size", human(target.blocks() * BLOCK_BYTES));
    let model = facts.and_then(|facts| facts.model.clone());
    let known = [
        model.map(|model| Row::known("Model", model)),
        facts.map(|_| size),
    ];
    let known = known.into_iter().flatten();
    let table: Vec<Vec<String>> = std::iter::once(head)
        .chain(known.chain(found.rows).map(|row| row.cells()))
        .collect();
    out.table(&[0, 2], &table)?;
    let unknown = found.unknown.iter();
    let unknown = unknown.map(|what| format!("Cannot tell {what}."));
    let lines: Vec<String> = found.advice.into_iter().chain(unknown).collect();
    if !lines.is_empty() {
        out.line(format_args!(""))?;
    }
    for line in &lines {
        out.line(format_args!("- {line}"))?;
    }
    if let Some(why) = &found.stopped {
        out.line(format_args!("\nNot all was done: {why}."))?;
    }
    if let Some(missing) = &found.missing {
        let missing = missing.join("; ");
        out.line(format_args!("Missing, or not to the end: {missing}."))?;
    }
    let spent = length(found.seconds);
    out.line(format_args!("\n{spent} of the drive's time"))?;
    out.add_field("target", name);
    out.add_field("device", json!(facts));
    out.add_field("stopped", found.stopped.clone());
    out.add_field("missing", json!(found.missing.unwrap_or_default()));
    out.value(&found.value)?;
    if let (Some(mut file), Some(text)) = (page, found.page) {
        let written = file.write_all(text.as_bytes());
        let written = written.map_err(CommandError::from);
        let written = written.and_then(|()| Ok(file.publish()?));
        written.map_err(not_written)?;
    }
    // What was found until then is printed; a time that was given is no failure.
    match (found.result, found.stopped) {
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

/// Those that a host may write to in any order, and those that say why not.
fn models() -> Vec<&'static str> {
    let mut names = profile::all_names();
    names.retain(|name| *name != "caveat-scriptor");
    names
}
