//! Progress of long work, with rate and remaining time, on standard error if that is a terminal.

use crate::live::is_dumb;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt;
use std::io::{self, BufReader, IsTerminal, Read, Write};

/// Bytes copied at once.
const CHUNK: usize = 1 << 20;

/// A progress bar that counts bytes or steps; invisible if standard error is not a terminal.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Counts bytes up to `total`; without a total, shows only amount and rate.
    pub fn bytes(what: &str, total: Option<u64>) -> Self {
        let template = match total {
            Some(_) => {
                "{msg} {wide_bar:.dim} {binary_bytes}/{binary_total_bytes} \
                 {binary_bytes_per_sec} {eta} left"
            }
            None => "{msg} {spinner} {binary_bytes} {binary_bytes_per_sec}",
        };
        Self::new(what, total, template)
    }

    /// Counts steps (zones, objects, runs) up to `total`.
    pub fn steps(what: &str, total: Option<u64>) -> Self {
        let template = match total {
            Some(_) => "{msg} {wide_bar:.dim} {pos}/{len} {rate} {eta} left",
            None => "{msg} {spinner} {pos} {rate}",
        };
        Self::new(what, total, template)
    }

    /// Shows only a message, for work of unknown size.
    pub fn words(what: &str) -> Self {
        Self::new(what, None, "{spinner} {msg}")
    }

    fn new(what: &str, total: Option<u64>, template: &str) -> Self {
        let target = if std::io::stderr().is_terminal() && !is_dumb() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(total, target);
        // If the template does not parse, only the appearance of the bar suffers.
        if let Ok(style) = ProgressStyle::with_template(template) {
            let rate = |state: &ProgressState, to: &mut dyn fmt::Write| {
                _ = to.write_str(&rate(state.per_sec()));
            };
            // Characters that every terminal and every locale has.
            let style = style.progress_chars("=> ").tick_chars("-\\|/ ");
            bar.set_style(style.with_key("rate", rate));
        }
        bar.set_message(what.to_owned());
        Self { bar }
    }

    /// Sets the position.
    pub fn set(&self, position: u64) {
        self.bar.set_position(position);
    }

    /// Sets position and total, if the total becomes known only during the work.
    pub fn set_of(&self, position: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(position);
    }

    /// Advances the position.
    pub fn advance(&self, by: u64) {
        self.bar.inc(by);
    }

    /// Advances the position by the bytes read from `source`.
    pub fn reading<R: Read>(&self, source: R) -> impl Read {
        self.bar.wrap_read(source)
    }

    /// Copies `source` to `target`, and advances the position.
    ///
    /// # Errors
    /// The error of either side.
    pub fn copy(&self, source: &mut dyn Read, target: &mut dyn Write) -> io::Result<u64> {
        // The pieces of the copy have the size of this buffer.
        let mut source = BufReader::with_capacity(CHUNK, self.reading(source));
        io::copy(&mut source, target)
    }

    /// Sets the message.
    pub fn message(&self, what: String) {
        self.bar.set_message(what);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Steps per second: one digit behind the point where there are few.
fn rate(per_second: f64) -> String {
    match per_second {
        ..10.0 => format!("{per_second:.1}/s"),
        _ => format!("{per_second:.0}/s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_rounded() {
        assert_eq!(rate(448.9901), "449/s");
        assert_eq!(rate(0.26), "0.3/s");
    }
}
