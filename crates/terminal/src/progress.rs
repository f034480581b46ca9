//! Progress of long work, with rate and time left, on standard error and only on a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, BufReader, IsTerminal, Read, Write};

/// Bytes copied at once.
const CHUNK: usize = 1 << 20;

/// A bar that counts bytes or steps; shows nothing where standard error is no terminal.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Counts bytes up to `total`; without a total only amount and rate are shown.
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

    /// Counts things (zones, objects, runs) up to `total`.
    pub fn steps(what: &str, total: Option<u64>) -> Self {
        let template = match total {
            Some(_) => "{msg} {wide_bar:.dim} {pos}/{len} {per_sec} {eta} left",
            None => "{msg} {spinner} {pos} {per_sec}",
        };
        Self::new(what, total, template)
    }

    /// Only words: what is going on, where nobody knows how much there is of it.
    pub fn words(what: &str) -> Self {
        Self::new(what, None, "{spinner} {msg}")
    }

    fn new(what: &str, total: Option<u64>, template: &str) -> Self {
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(total, target);
        // A template that does not parse costs the looks of the bar, not the work.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        Self { bar }
    }

    /// Says how far the work is.
    pub fn set(&self, position: u64) {
        self.bar.set_position(position);
    }

    /// Says how far the work is, and how far it goes, where that is only learnt on the way.
    pub fn set_of(&self, position: u64, total: u64) {
        self.bar.set_length(total);
        self.bar.set_position(position);
    }

    /// Adds to what is done.
    pub fn advance(&self, by: u64) {
        self.bar.inc(by);
    }

    /// Adds to what is done as many bytes as are read.
    pub fn reading<R: Read>(&self, source: R) -> impl Read {
        self.bar.wrap_read(source)
    }

    /// Copies what is read, and adds it to what is done.
    ///
    /// # Errors
    /// Of the one or the other.
    pub fn copy(&self, source: &mut dyn Read, target: &mut dyn Write) -> io::Result<u64> {
        // Its pieces are as large as the buffer.
        let mut source = BufReader::with_capacity(CHUNK, self.reading(source));
        io::copy(&mut source, target)
    }

    /// Says what is going on now.
    pub fn message(&self, what: String) {
        self.bar.set_message(what);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
