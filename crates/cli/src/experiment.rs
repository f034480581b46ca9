//! `zonestore experiment …`: repeats published measurements.

use crate::args::{ExperimentCommand, ExperimentRun};
use crate::errors::{CommandError, CommandResult, Exit, fail};
use crate::local_file;
use crate::output::Output;
use experiments::{Experiment, Run, Scale, Table, Unknown, listed};
use plot::Figure;
use serde_json::json;
use std::fs;
use std::path::Path;
use terminal::{Interrupt, Progress};

/// Runs `zonestore experiment …`.
pub fn run(command: ExperimentCommand, out: &mut Output) -> CommandResult {
    match command {
        ExperimentCommand::List => list(out),
        ExperimentCommand::Run(arguments) => measure(&arguments, out),
    }
}

fn list(out: &mut Output) -> CommandResult {
    let all = listed();
    let mut rows = vec![["id", "title", "printed in"].map(str::to_owned).to_vec()];
    rows.extend(
        all.iter()
            .map(|e| [e.id, e.title, e.source].map(str::to_owned).to_vec()),
    );
    out.table(&[0, 1, 2], &rows)?;
    out.value(&json!({ "experiments": all }))
}

fn chosen(ids: &[String]) -> CommandResult<Vec<&'static Experiment>> {
    const NAMES: &str = "`zonestore experiment list` has their names";
    experiments::chosen(ids).map_err(|Unknown { id, meant }| {
        let unknown = CommandError::new(Exit::NotFound, format_args!("no experiment '{id}'"));
        match meant {
            Some(meant) => unknown.hint(format_args!("did you mean {meant}? {NAMES}")),
            None => unknown.hint(NAMES),
        }
    })
}

fn measure(arguments: &ExperimentRun, out: &mut Output) -> CommandResult {
    let chosen = chosen(&arguments.ids)?;
    let folder = arguments.out.as_deref();
    if let Some(folder) = folder {
        // Fails here if the folder cannot be written, not after hours of work.
        fs::create_dir_all(folder)
            .and_then(|()| tempfile::tempfile_in(folder))
            .map_err(|error| CommandError::folder(folder, &error).context("--out"))?;
    }
    let interrupted = Interrupt::listen()?.flag();
    let mut tables: Vec<Table> = Vec::new();
    let mut stopped = None;
    for experiment in chosen {
        let progress = Progress::words(experiment.id);
        let mut run = Run {
            seed: arguments.seed,
            scale: Scale(arguments.scale),
            figures: folder.is_some(),
            interrupted: interrupted.clone(),
            progress: &mut |what| progress.message(format!("{}: {what}", experiment.id)),
        };
        let result = experiment.run(&mut run);
        drop(progress);
        match result {
            Ok((table, figures)) => {
                // First, for a reader of the output may be gone.
                let written = folder.map_or(Ok(()), |folder| write(folder, &table, &figures));
                show(&table, out)?;
                out.flush()?;
                tables.push(table);
                // The results of hours are printed all the same.
                if let Err(error) = written {
                    stopped = Some(error);
                    break;
                }
            }
            Err(why) => {
                stopped = Some(CommandError::new(Exit::Failed, why).context(experiment.id));
                break;
            }
        }
    }
    let against: Vec<&str> = (tables.iter())
        .filter(|table| table.contradictions().next().is_some())
        .map(|table| table.id)
        .collect();
    out.value(&tables)?;
    if let Some(stopped) = stopped {
        return Err(stopped);
    }
    if against.is_empty() {
        return Ok(());
    }
    fail!(OutOfTolerance, "out of tolerance: {}", against.join(", "))
}

fn write(folder: &Path, table: &Table, figures: &[(String, Figure)]) -> CommandResult {
    let put = |name: String, text: &str| local_file::write(&folder.join(name), text);
    let text = serde_json::to_string_pretty(table)? + "\n";
    put(format!("{}.json", table.id), &text)?;
    for (name, figure) in figures {
        put(format!("{name}.svg"), &plot::document(figure))?;
    }
    Ok(())
}

fn show(table: &Table, out: &mut Output) -> CommandResult {
    out.line(format_args!("{}: {}", table.id, table.title))?;
    out.line(format_args!("({})", table.source))?;
    let rows = table.in_words();
    out.table(&[0, 5], &rows)?;
    out.line(format_args!(""))
}
