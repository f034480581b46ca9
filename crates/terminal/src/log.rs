//! The log: what the libraries say, in lines for people or for programs, on standard error or in files.

use crate::lines::Form;
use crate::log_file::LogFile;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt};

/// What is written, and where.
#[derive(Clone, Debug, Default)]
pub struct Logging {
    /// Lines are JSON objects and not text.
    pub json: bool,
    /// What is written unless RUST_LOG asks for something else: `warn`.
    pub usual: &'static str,
    /// A crate of which nothing is written, whatever RUST_LOG says.
    pub kept_out: &'static str,
    /// Where to, if not to standard error.
    pub file: Option<PathBuf>,
    /// Targets with logs of their own, which RUST_LOG does not change: their events go to this file, or with the
    /// others, or nowhere.
    pub apart: Vec<(&'static str, Apart)>,
}

/// Where the events of a target go.
#[derive(Clone, Debug)]
pub enum Apart {
    /// To this file.
    File(PathBuf),
    /// To the others.
    WithOthers,
    /// Nowhere.
    Nowhere,
}

/// The log that is no other's.
const MAIN: &str = "main";

/// The logs, each with its name: `main` or its target. A copy is the same.
#[derive(Clone)]
pub struct LogFiles(Vec<(&'static str, LogFile)>);

impl LogFiles {
    /// Opens all of them anew: they may have been moved away.
    ///
    /// # Errors
    /// One cannot be opened; the others are.
    pub fn reopen(&self) -> io::Result<()> {
        let failed: Vec<_> = self
            .0
            .iter()
            .filter_map(|(_, file)| file.reopen().err())
            .collect();
        failed.into_iter().next().map_or(Ok(()), Err)
    }

    /// How many lines of each log could not be written.
    pub fn lost(&self) -> Vec<(&'static str, u64)> {
        let logs = self.0.iter();
        logs.map(|(name, file)| (*name, file.lost())).collect()
    }

    /// Tells what is lost and was not told, before the end of the process.
    pub fn finish(&self) {
        for (_, file) in &self.0 {
            file.finish();
        }
    }
}

/// Sees what is logged, and spans, besides.
pub type Observer = Box<dyn Layer<Registry> + Send + Sync>;

/// Writes it there from now on.
///
/// # Errors
/// A file cannot be opened.
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
    // Neither into a file nor for somebody who does not want them.
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

/// Whether a target is a crate's or that of one of its modules.
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
