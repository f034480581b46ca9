//! Takes over the terminal for a live view: the alternate screen and single keys. The terminal is restored
//! afterwards, also after an error, a panic or a signal.

use ratatui::Frame;
pub use ratatui::crossterm::event::KeyCode;
use ratatui::crossterm::event::{self, Event, KeyEventKind, KeyModifiers};
use runtime::Runtime;
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

/// Shows a view until the user leaves it.
///
/// # Errors
/// The terminal's error.
pub fn show(live: &mut dyn Live) -> io::Result<()> {
    // This thread ends with the process at the latest.
    Runtime::system().spawn("terminal", end_with_terminal)?;
    let mut terminal = ratatui::try_init()?;
    let mut drawn = false;
    let shown = (|| loop {
        if !drawn {
            terminal.draw(|frame| live.draw(frame))?;
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
