//! The terminal while `fs top` has it: another screen, keys one by one, and everything as it was
//! afterwards, also after an error, a panic or a signal.
//!
//! Looks are taken on a thread of their own, so that a slow one (a server that takes its time) never
//! keeps a key waiting.

use crate::errors::{CommandError, CommandResult, Exit};
use control::Client;
use inspect::{Snapshot, Source};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::time::Duration;
use terminal::Interrupt;
use zone_map::{View, draw};

/// How long keys are waited for before new looks and signals are asked for.
const TICK: Duration = Duration::from_millis(50);

/// Shows looks at `source`, `first` being one already, until somebody leaves.
pub fn show(source: Source<Client>, first: Snapshot, interval: Duration) -> CommandResult {
    let interrupt = Interrupt::listen()?;
    let (give, looks) = sync_channel(1);
    let (now, asked) = channel();
    // It ends with the process at the latest: a look changes nothing.
    std::thread::spawn(move || watch(source, interval, &give, &asked));
    std::thread::spawn(end_with_terminal);
    let mut terminal = ratatui::try_init()?;
    let mut snapshot = first;
    // Without colours blocks would not say whose a zone is.
    let mut view = View {
        letters: std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
        ..View::default()
    };
    let mut drawn = false;
    let shown = (|| loop {
        if !drawn {
            terminal.draw(|frame| draw(frame, &snapshot, &view))?;
            drawn = true;
        }
        if interrupt.is_wished() {
            return Ok(());
        }
        if let Ok(look) = looks.try_recv() {
            view.problem = match look {
                Ok(look) => {
                    snapshot = look;
                    None
                }
                Err(error) => Some(error.message),
            };
            drawn = false;
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
                KeyCode::Char(' ') => _ = now.send(()),
                KeyCode::Down => view.scrolled = view.scrolled.saturating_add(1),
                KeyCode::Up => view.scrolled = view.scrolled.saturating_sub(1),
                KeyCode::Char('l') => view.letters = !view.letters,
                KeyCode::Char('m') => view.map_only = !view.map_only,
                KeyCode::Home => view.scrolled = 0,
                _ => {}
            }
            view.scrolled = view
                .scrolled
                .min(snapshot.most_dead().len().saturating_sub(1));
        }
    })();
    ratatui::try_restore()?;
    shown
}

/// Ends the process when its terminal is gone: waiting for keys never comes back from that.
fn end_with_terminal() {
    while std::io::stdout().is_terminal() {
        std::thread::sleep(TICK * 10);
    }
    std::process::exit(Exit::Failed as i32);
}

/// Looks again and again, until nobody wants to know.
fn watch(
    mut source: Source<Client>,
    interval: Duration,
    give: &SyncSender<Result<Snapshot, CommandError>>,
    asked: &Receiver<()>,
) {
    while !matches!(
        asked.recv_timeout(interval),
        Err(RecvTimeoutError::Disconnected)
    ) {
        if give
            .send(source.look().map_err(CommandError::from))
            .is_err()
        {
            return;
        }
    }
}
