//! The log on standard error: what the libraries say, in lines for people or for programs.
//!
//! Secrets never get there: request headers that hold some are marked as such where requests come in
//! (`s3`), and of `s3s`, which prints whole requests with their signed addresses, nothing is taken
//! whatever RUST_LOG asks for.

use clap::ValueEnum;
use std::io::IsTerminal;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

/// How the log looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    /// Lines for people
    Text,
    /// One JSON object a line
    Json,
}

/// Warnings, of a server also each change of its state; or what RUST_LOG asks for.
pub fn to_stderr(format: Format, serves: bool) {
    let usual = if serves { "info" } else { "warn" };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(usual));
    let no_secrets = filter_fn(|event| !is_of(event.target(), "s3s"));
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines = match format {
        Format::Json => lines.json().flatten_event(true).boxed(),
        Format::Text => {
            // Neither into a file nor for somebody who does not want them.
            let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            let colours = !plain && std::io::stderr().is_terminal();
            lines.with_ansi(colours).boxed()
        }
    };
    tracing_subscriber::registry()
        .with(filter)
        .with(lines.with_filter(no_secrets))
        .init();
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
