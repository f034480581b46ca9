//! The terminal while something live has it: another screen, keys one by one, and everything as it was
//! afterwards, also after an error, a panic or a signal.

use ratatui::Frame;
pub use ratatui::crossterm::event::KeyCode;
use ratatui::crossterm::event::{self, Event, KeyEventKind, KeyModifiers};
use runtime::Runtime;
use std::io::{self, IsTerminal};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::time::Duration;

/// How long keys are waited for before a [tick](Live::tick).
const TICK: Duration = Duration::from_millis(50);

/// What is shown.
pub trait Live {
    /// Draws everything.
    fn draw(&self, frame: &mut Frame<'_>);
    /// Time has passed: whether to draw again, `None` to leave.
    fn tick(&mut self) -> Option<bool>;
    /// A key other than those that leave, which are q, Esc and Ctrl-C.
    fn press(&mut self, key: KeyCode);
}

/// Shows it until somebody leaves.
///
/// # Errors
/// The terminal's.
pub fn show(live: &mut dyn Live) -> io::Result<()> {
    // It ends with the process at the latest.
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

/// Something that is looked at again and again, on a thread of its own: a slow look never keeps a key waiting.
pub struct Looks<T> {
    taken: Receiver<T>,
    now: Sender<()>,
}

impl<T: Send + 'static> Looks<T> {
    /// Looks in this interval, until this is dropped.
    ///
    /// # Errors
    /// The host's, which gives no thread.
    pub fn every(
        interval: Duration,
        mut look: impl FnMut() -> T + Send + 'static,
    ) -> io::Result<Self> {
        let (give, taken) = sync_channel(1);
        let (now, asked) = channel();
        let gone = |waited| matches!(waited, Err(RecvTimeoutError::Disconnected));
        let work =
            move || while !gone(asked.recv_timeout(interval)) && give.send(look()).is_ok() {};
        // It ends with the process at the latest: a look changes nothing.
        Runtime::system().spawn("looks", work)?;
        Ok(Self { taken, now })
    }

    /// A look that has been taken since the last one.
    pub fn taken(&self) -> Option<T> {
        self.taken.try_recv().ok()
    }

    /// Looks at once.
    pub fn look_now(&self) {
        // If nobody looks any more, there is nothing to show.
        let _ = self.now.send(());
    }
}

/// Ends the process when its terminal is gone: waiting for keys never comes back from that.
fn end_with_terminal() {
    let runtime = Runtime::system();
    while io::stdout().is_terminal() {
        runtime.wait_until(runtime.now() + TICK * 10);
    }
    std::process::exit(1);
}
