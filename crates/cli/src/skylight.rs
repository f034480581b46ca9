//! `zonestore skylight`: what is inside a drive.

use crate::args::SkylightArguments;
use crate::errors::{CommandError, CommandResult, Exit};
use crate::output::Output;
use crate::progress::Progress;
use drive_model::profile;
use serde_json::json;
use skylight::report::{Row, advice, rows};
use skylight::{Model, Options, Target, examine, examine_for_figures, html};
use std::fs;

/// Looks into a model, or lists the models.
pub fn run(arguments: &SkylightArguments, out: &mut Output) -> CommandResult {
    let Some(name) = &arguments.target else {
        let names = models();
        for name in &names {
            out.line(format_args!("{name}"))?;
        }
        return out.value(&json!({ "models": names }));
    };
    let mut model = Model::named(name, arguments.seed).map_err(|error| unknown(&error))?;
    let options = Options {
        quick: arguments.quick,
        seed: arguments.seed,
    };
    let progress = Progress::steps("", None);
    let mut next = |what: &str| {
        progress.advance(1);
        progress.message(what.to_owned());
    };
    let (findings, seen, result) = match &arguments.html {
        Some(_) => examine_for_figures(&mut model, options, &mut next),
        None => examine(&mut model, options, &mut next),
    };
    drop(progress);
    let rows = rows(&findings);
    let advice = advice(&findings, model.blocks());
    let table: Vec<Vec<String>> = [vec!["property".into(), name.clone(), "sure".into()]]
        .into_iter()
        .chain(rows.iter().map(cells))
        .collect();
    out.table(&[0, 1], &table)?;
    if !advice.is_empty() {
        out.line(format_args!(""))?;
    }
    for line in &advice {
        out.line(format_args!("- {line}"))?;
    }
    let hours = findings.seconds / 3600.0;
    out.line(format_args!("\n{hours:.1} hours of the drive's time"))?;
    out.value(&json!({ "target": name, "findings": findings, "advice": advice }))?;
    if let Some(file) = &arguments.html {
        let page = html::page(name, model.blocks(), &findings, &seen);
        fs::write(file, page).map_err(|error| {
            let message = format!("cannot write {}: {error}", file.display());
            CommandError::new(Exit::Failed, message)
        })?;
    }
    // What was found until then is printed.
    result.map_err(|error| CommandError::new(Exit::Failed, error))
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
