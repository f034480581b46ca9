//! The terminal while something live has it: another screen, keys one by one, and everything as it was
//! afterwards, also after an error, a panic or a signal.

use ratatui::Frame;
pub use ratatui::crossterm::event::KeyCode;
use ratatui::crossterm::event::{self, Event, KeyEventKind, KeyModifiers};
use runtime::Runtime;
use std::io::{self, IsTerminal};
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

/// Ends the process when its terminal is gone: waiting for keys never comes back from that.
fn end_with_terminal() {
    let runtime = Runtime::system();
    while io::stdout().is_terminal() {
        runtime.wait_until(runtime.now() + TICK * 10);
    }
    std::process::exit(1);
}
