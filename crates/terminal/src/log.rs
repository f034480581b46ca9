//! The log on standard error: what the libraries say, in lines for people or for programs.

use std::io::IsTerminal;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

/// Writes it there from now on: `usual` ("warn"), or what RUST_LOG asks for, but nothing of the crate
/// `kept_out` whatever that says. One line is text, or a JSON object.
pub fn log_to_stderr(json: bool, usual: &str, kept_out: &'static str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(usual));
    let no_secrets = filter_fn(|event| !is_of(event.target(), kept_out));
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines = if json {
        lines.json().flatten_event(true).boxed()
    } else {
        // Neither into a file nor for somebody who does not want them.
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        lines
            .with_ansi(!plain && std::io::stderr().is_terminal())
            .boxed()
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
