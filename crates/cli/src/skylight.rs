//! `zonestore skylight`: infers the internals of a drive from the latencies of its requests.

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
use std::io::Write;
use std::path::Path;
use terminal::{Interrupt, Steps, WholeFile, human, length};

const MODELS: &str = "zonestore skylight lists the models";

/// Examines a model, a device or a file, or lists the models.
pub fn run(arguments: &SkylightArguments, out: &mut Output) -> CommandResult {
    let Some(path) = &arguments.target else {
        let names = models();
        for name in &names {
            out.line(format_args!("{name}"))?;
        }
        return out.value(&json!({ "models": names }));
    };
    // Fails here if the page cannot be written, not after a question or hours of work. A file is begun again behind the
    // question, at which Ctrl-C would leave its part.
    let page = arguments.html.as_deref().map(begin).transpose()?;
    let page = page.filter(|page| page.partial().is_none());
    let steps = Steps::default();
    // For display only; a path need not be UTF-8.
    let name = path.to_string_lossy();
    if let Some(profile) = model(path)? {
        let seed = arguments.seed;
        let model = Model::of(move || profile.model(seed));
        let model = model.map_err(|error| CommandError::from(error).context(&name))?;
        let mut model = model
            .with_limits(limits(arguments)?)
            .with_watch(watch(&steps));
        return look(arguments, &mut model, None, page, steps, out);
    }
    let (mut target, facts) = host::open(arguments, path, watch(&steps))?;
    look(arguments, &mut target, Some(&facts), page, steps, out)
}

/// Limits of the examination. From here on, Ctrl-C only sets a flag, so no question may follow.
fn limits(arguments: &SkylightArguments) -> CommandResult<Limits> {
    let budget = arguments.budget.as_ref();
    Ok(Limits {
        budget: budget.map(|budget| Span::from_seconds(budget.0 as f64)),
        interrupted: Interrupt::listen()?.flag(),
    })
}

/// The profile that `path` names: a built-in one, or the text of a file that ends in `.toml`, which is never taken
/// for a drive. `None` if it is a device or a file.
fn model(path: &Path) -> CommandResult<Option<AnyProfile>> {
    let name = &*path.to_string_lossy();
    let is_profile = |path: &Path| path.extension().is_some_and(|ending| ending == "toml");
    let is_known = profile::all_names().contains(&name);
    let profile =
        if !is_known && (is_profile(path) || path.canonicalize().is_ok_and(|p| is_profile(&p))) {
            AnyProfile::parse(local_file::text(path)?)
                .map_err(|error| CommandError::from(error).context(name))?
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

/// Begins the page, so that a failure shows early.
fn begin(page: &Path) -> CommandResult<WholeFile> {
    local_file::create(page).map_err(not_written)
}

fn not_written(error: CommandError) -> CommandError {
    error.context("cannot write the page")
}

fn watch(steps: &Steps) -> Watch {
    let steps = steps.clone();
    Box::new(move |now, left| {
        let left = left.map(Span::seconds);
        steps.at(now.since(Time::START).seconds(), left);
    })
}

fn look(
    arguments: &SkylightArguments,
    target: &mut dyn Target,
    facts: Option<&Facts>,
    page: Option<WholeFile>,
    steps: Steps,
    out: &mut Output,
) -> CommandResult {
    let page = match (page, &arguments.html) {
        (None, Some(path)) => Some(begin(path)?),
        (page, _) => page,
    };
    let name = arguments.target.as_deref().unwrap_or(Path::new(""));
    let name = &*name.to_string_lossy();
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
    let size = Row::known("Size", human(target.blocks() * BLOCK_BYTES));
    let model = facts.and_then(|facts| facts.model.clone());
    let model = model.map(|model| Row::known("Model", model));
    let known = [model, facts.map(|_| size)].into_iter().flatten();
    out.table(&[0, 2], &found.table(name, known))?;
    for line in found.lines() {
        out.line(format_args!("{line}"))?;
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
    // Findings up to then are printed; the end of a given budget is not a failure.
    match (found.result, found.stopped) {
        (Ok(()) | Err(TargetError::TimeOver), _) | (_, None) => Ok(()),
        (Err(error), Some(why)) => {
            out.flush()?;
            let failed = CommandError::new(Exit::Failed, why).context(name);
            // The thread of a stuck request never returns, and neither would a join.
            if matches!(error, TargetError::Stuck { .. }) {
                leave(&failed);
            }
            Err(failed)
        }
    }
}

/// The models that a host may write in any order, and those that report why not.
fn models() -> Vec<&'static str> {
    let mut names = profile::all_names();
    names.retain(|name| *name != "caveat-scriptor");
    names
}
