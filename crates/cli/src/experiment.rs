//! `zonestore experiment …`: what is printed, measured again.

use crate::args::{ExperimentCommand, ExperimentRun};
use crate::errors::{CommandError, CommandResult, Exit};
use crate::local_file;
use crate::output::Output;
use experiments::{ALL, Experiment, Row, Run, Scale, Stopped, Table, Tolerance, find};
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
    let mut rows = vec![["id", "title", "printed in"].map(str::to_owned).to_vec()];
    rows.extend(
        ALL.iter()
            .map(|e| [e.id, e.title, e.source].map(str::to_owned).to_vec()),
    );
    out.table(&[0, 1, 2], &rows)?;
    let all = ALL.iter().map(|e| {
        let numbers: Vec<_> = (e.expected)().into_iter().map(|row| row.what).collect();
        json!({ "id": e.id, "title": e.title, "source": e.source, "numbers": numbers })
    });
    out.value(&json!({ "experiments": all.collect::<Vec<_>>() }))
}

fn chosen(ids: &[String]) -> CommandResult<Vec<&'static Experiment>> {
    if ids.is_empty() {
        return Ok(ALL.iter().collect());
    }
    let known = |id: &String| {
        let unknown = || CommandError::new(Exit::NotFound, format_args!("no experiment '{id}'"));
        let names = "`zonestore experiment list` has their names";
        find(id).ok_or_else(|| match nearest(id) {
            Some(meant) => unknown().hint(format_args!("did you mean {meant}? {names}")),
            None => unknown().hint(names),
        })
    };
    ids.iter().map(known).collect()
}

/// The name that somebody may have meant who wrote `id`.
fn nearest(id: &str) -> Option<&'static str> {
    let like = |e: &Experiment| strsim::jaro_winkler(e.id, id);
    let nearest = ALL.iter().max_by(|a, b| like(a).total_cmp(&like(b)));
    nearest.filter(|e| like(e) > 0.8).map(|e| e.id)
}

fn measure(arguments: &ExperimentRun, out: &mut Output) -> CommandResult {
    let chosen = chosen(&arguments.ids)?;
    let folder = arguments.out.as_deref();
    if let Some(folder) = folder {
        // Said now, not after hours of work.
        fs::create_dir_all(folder)
            .and_then(|()| tempfile::tempfile_in(folder))
            .map_err(|error| CommandError::file(folder, &error).context("--out"))?;
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
                show(&table, out)?;
                out.flush()?;
                if let Some(folder) = folder {
                    write(folder, &table, &figures)?;
                }
                tables.push(table);
            }
            Err(why) => {
                stopped = Some(failed(experiment.id, &why));
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
    let what = format_args!("out of tolerance: {}", against.join(", "));
    Err(CommandError::new(Exit::OutOfTolerance, what))
}

fn failed(id: &str, why: &Stopped) -> CommandError {
    CommandError::new(Exit::Failed, why).context(id)
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
    let head = ["", "printed", "measured", "ratio", "tolerance", ""];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(table.rows.iter().map(cells));
    out.table(&[0, 5], &rows)?;
    out.line(format_args!(""))
}

fn cells(row: &Row) -> Vec<String> {
    let answer = row.unit == "yes";
    let value = |value: f64| match value {
        1.0 if answer => "yes".to_owned(),
        0.0 if answer => "no".to_owned(),
        value => number(value),
    };
    let printed = match row.printed {
        (Some(low), Some(high)) if low == high => value(low),
        (Some(low), Some(high)) => format!("{}–{}", value(low), value(high)),
        (Some(low), None) => format!("≥ {}", value(low)),
        (None, Some(high)) => format!("≤ {}", value(high)),
        (None, None) => String::new(),
    };
    let what = match row.unit {
        "" | "yes" => row.what.clone(),
        unit => format!("{}, {unit}", row.what),
    };
    let tolerance = match row.tolerance {
        Tolerance::Part(part) => format!("{} %", number(part * 100.0)),
        Tolerance::By(0.0) => String::new(),
        Tolerance::By(by) => number(by),
    };
    let ratio = row.ratio.filter(|_| !answer);
    vec![
        what,
        printed,
        value(row.measured),
        ratio.map(|ratio| format!("{ratio:.3}")).unwrap_or_default(),
        tolerance,
        if row.within { "" } else { "out of tolerance" }.to_owned(),
    ]
}

/// No more digits than tell it from its neighbours.
fn number(value: f64) -> String {
    if value.is_nan() {
        return "–".into();
    }
    let digits = match value.abs() {
        1000.0.. => 0,
        10.0.. => 2,
        _ => 3,
    };
    let text = format!("{value:.digits$}");
    if digits == 0 {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
