//! Takes over the terminal for a live view: the alternate screen and single keys. The terminal is restored
//! afterwards, also after an error, a panic or a signal.

use ratatui::Frame;
use ratatui::buffer::Buffer;
pub use ratatui::crossterm::event::KeyCode;
use ratatui::crossterm::event::{self, Event, KeyEventKind, KeyModifiers};
use runtime::Runtime;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::time::Duration;

/// How long to wait for a key before a [tick](Live::tick).
const TICK: Duration = Duration::from_millis(50);

/// A live view.
pub trait Live {
    /// Draws the whole view.
    fn draw(&self, frame: &mut Frame<'_>);
    /// Called after each interval: `Some(true)` to draw again, `None` to leave.
    fn tick(&mut self) -> Option<bool>;
    /// Handles a key other than q, Esc and Ctrl-C, which leave.
    fn press(&mut self, key: KeyCode);
}

/// Whether standard output is a terminal on which a view can be drawn.
pub fn can_draw() -> bool {
    io::stdout().is_terminal() && !is_dumb()
}

/// Whether the terminal can only print lines.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|name| name == "dumb")
}

/// Whether the locale's characters are UTF-8: what a terminal is taken to show.
pub fn has_utf8() -> bool {
    is_utf8(std::env::var_os)
}

/// The first variable that is set to something counts, as in setlocale(3); without any, the locale is C.
fn is_utf8(variable: impl Fn(&'static str) -> Option<OsString>) -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().map(variable);
    let locale = set.flatten().find(|value| !value.is_empty());
    let locale = locale.unwrap_or_default().to_string_lossy().to_lowercase();
    // LANGUAGE_COUNTRY.CHARACTERS@MODIFIER, or C.UTF-8.
    let characters = locale
        .split('@')
        .next()
        .and_then(|name| name.rsplit('.').next());
    matches!(characters, Some("utf-8" | "utf8"))
}

/// Replaces what a terminal without UTF-8 cannot show, as in names.
fn only_ascii(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if !cell.symbol().is_ascii() {
            cell.set_char('?');
        }
    }
}

/// Shows a view until the user leaves it.
///
/// # Errors
/// The terminal's error.
pub fn show(live: &mut dyn Live) -> io::Result<()> {
    // This thread ends with the process at the latest.
    Runtime::system().spawn("terminal", end_with_terminal)?;
    let mut terminal = ratatui::try_init()?;
    let mut drawn = false;
    let has_utf8 = has_utf8();
    let shown = (|| loop {
        if !drawn {
            terminal.draw(|frame| {
                live.draw(frame);
                if !has_utf8 {
                    only_ascii(frame.buffer_mut());
                }
            })?;
        }
        match live.tick() {
            None => return Ok(()),
            Some(again) => drawn = !again,
        }
        if !event::poll(TICK)? {
            continue;
        }
        drawn = false;
        if let Event::Key(key) = event::read()?
            && key.kind != KeyEventKind::Release
        {
            let control = key.modifiers.contains(KeyModifiers::CONTROL);
            match key.code {
                KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                KeyCode::Char('c') if control => return Ok(()),
                code => live.press(code),
            }
        }
    })();
    ratatui::try_restore()?;
    shown
}

/// Repeats a query on a thread of its own, so that a slow one never delays a key.
pub struct Looks<T> {
    taken: Receiver<T>,
    now: Sender<()>,
}

impl<T: Send + 'static> Looks<T> {
    /// Runs `look` at this interval, until the result is dropped.
    ///
    /// # Errors
    /// The host cannot start a thread.
    pub fn every(
        interval: Duration,
        mut look: impl FnMut() -> T + Send + 'static,
    ) -> io::Result<Self> {
        let (give, taken) = sync_channel(1);
        let (now, asked) = channel();
        let gone = |waited| matches!(waited, Err(RecvTimeoutError::Disconnected));
        let work =
            move || while !gone(asked.recv_timeout(interval)) && give.send(look()).is_ok() {};
        // The thread ends with the process at the latest, which is safe because a query changes nothing.
        Runtime::system().spawn("looks", work)?;
        Ok(Self { taken, now })
    }

    /// The latest unread result, if there is one.
    pub fn taken(&self) -> Option<T> {
        self.taken.try_recv().ok()
    }

    /// Runs the query at once.
    pub fn look_now(&self) {
        // If the thread has ended, there is nothing to show.
        let _ = self.now.send(());
    }
}

/// Ends the process when its terminal is gone: waiting for a key would never return.
fn end_with_terminal() {
    let runtime = Runtime::system();
    while io::stdout().is_terminal() {
        runtime.wait_until(runtime.now() + TICK * 10);
    }
    std::process::exit(1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;

    #[test]
    fn the_first_variable_that_is_set_names_the_locale() {
        let utf8 = |set: &[(&str, &str)]| {
            is_utf8(|name| {
                let found = set.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| OsString::from(value))
            })
        };
        assert!(!utf8(&[]));
        assert!(!utf8(&[("LC_ALL", "C"), ("LANG", "en_GB.UTF-8")]));
        assert!(!utf8(&[("LC_CTYPE", "de_DE.ISO-8859-1@euro")]));
        assert!(utf8(&[("LC_ALL", ""), ("LANG", "C.UTF-8")]));
        assert!(utf8(&[("LC_CTYPE", "de_DE.utf8@euro"), ("LANG", "C")]));
    }

    #[test]
    fn without_utf8_other_characters_are_replaced() {
        let mut buffer = Buffer::with_lines(["a─ü.zoned"]);
        only_ascii(&mut buffer);
        assert_eq!(buffer, Buffer::with_lines(["a??.zoned"]));
        assert_eq!(buffer.area, Rect::new(0, 0, 9, 1));
    }
}
