//! The log: messages of the libraries, as lines for people or for programs, on standard error or in files.

use crate::lines::Form;
use crate::log_file::LogFile;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt};

/// Level, format and destination of the log.
#[derive(Clone, Debug, Default)]
pub struct Logging {
    /// Whether lines are JSON objects instead of text.
    pub json: bool,
    /// The filter that applies unless RUST_LOG is set: `warn`.
    pub usual: &'static str,
    /// A crate whose messages are never written, whatever RUST_LOG says.
    pub kept_out: &'static str,
    /// The log file; `None` for standard error.
    pub file: Option<PathBuf>,
    /// Targets with a destination of their own, which RUST_LOG does not change.
    pub apart: Vec<(&'static str, Apart)>,
}

/// Destination of a target's events.
#[derive(Clone, Debug)]
pub enum Apart {
    /// This file.
    File(PathBuf),
    /// The main log.
    WithOthers,
    /// The events are dropped.
    Nowhere,
}

/// Name of the main log.
const MAIN: &str = "main";

/// The open logs, each with its name: `main` or its target. A clone refers to the same logs.
#[derive(Clone)]
pub struct LogFiles(Vec<(&'static str, LogFile)>);

impl LogFiles {
    /// Reopens all log files, which may have been moved.
    ///
    /// # Errors
    /// A file cannot be opened; the others are reopened.
    pub fn reopen(&self) -> io::Result<()> {
        let failed: Vec<_> = self
            .0
            .iter()
            .filter_map(|(_, file)| file.reopen().err())
            .collect();
        failed.into_iter().next().map_or(Ok(()), Err)
    }

    /// Number of lines of each log that could not be written.
    pub fn lost(&self) -> Vec<(&'static str, u64)> {
        let logs = self.0.iter();
        logs.map(|(name, file)| (*name, file.lost())).collect()
    }

    /// Reports unreported losses, before the end of the process.
    pub fn finish(&self) {
        for (_, file) in &self.0 {
            file.finish();
        }
    }
}

/// An additional receiver of log events and spans.
pub type Observer = Box<dyn Layer<Registry> + Send + Sync>;

/// Starts logging.
///
/// # Errors
/// A log file cannot be opened.
pub fn log(logging: Logging, observer: Option<Observer>) -> io::Result<LogFiles> {
    let mut files = Vec::new();
    let mut layers: Vec<Observer> = observer.into_iter().collect();
    let form = if logging.json { Form::Json } else { Form::Text };
    let mut open = |name, path: Option<&PathBuf>| {
        let file = match path {
            Some(path) => LogFile::open(path, form)?,
            None => LogFile::standard_error(form),
        };
        files.push((name, file.clone()));
        io::Result::Ok(BoxMakeWriter::new(file))
    };
    let writer = open(MAIN, logging.file.as_ref())?;
    // No colours in files, nor if the user does not want them.
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let colours = !plain && logging.file.is_none() && io::stderr().is_terminal();
    let level = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(logging.usual));
    let mut left_out = vec![logging.kept_out];
    for (target, apart) in &logging.apart {
        match apart {
            Apart::WithOthers => continue,
            Apart::File(path) => {
                let of_target = filter_fn(|event| is_of(event.target(), target));
                let lines = lines(logging.json, false, open(target, Some(path))?);
                layers.push(lines.with_filter(of_target).boxed());
            }
            Apart::Nowhere => {}
        }
        left_out.push(target);
    }
    let rest = filter_fn(move |event| !left_out.iter().any(|name| is_of(event.target(), name)));
    let others = lines(logging.json, colours, writer).with_filter(rest);
    layers.push(others.with_filter(level).boxed());
    tracing_subscriber::registry().with(layers).init();
    Ok(LogFiles(files))
}

fn lines(
    json: bool,
    colours: bool,
    writer: BoxMakeWriter,
) -> Box<dyn Layer<Registry> + Send + Sync> {
    let lines = fmt::layer().with_writer(writer).with_ansi(colours);
    match json {
        true => lines.json().flatten_event(true).boxed(),
        false => lines.boxed(),
    }
}

/// Whether a target is a crate of this name or one of its modules.
fn is_of(target: &str, name: &str) -> bool {
    target
        .strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_of_its_crate() {
        assert!(is_of("s3s", "s3s") && is_of("s3s::service", "s3s"));
        assert!(!is_of("s3", "s3s") && !is_of("s3s_more", "s3s"));
    }
}
