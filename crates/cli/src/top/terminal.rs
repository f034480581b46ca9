//! `fs top` on a terminal. Looks are taken on a thread of their own, so that a slow one (a server that takes
//! its time) never keeps a key waiting.

use crate::errors::{CommandError, CommandResult};
use control::Client;
use inspect::{Snapshot, Source};
use ratatui::Frame;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;
use terminal::Interrupt;
use terminal::live::{KeyCode, Live};
use zone_map::View;

type Look = Result<Snapshot, CommandError>;

struct Top {
    snapshot: Snapshot,
    view: View,
    interrupt: Interrupt,
    looks: Receiver<Look>,
    look_now: Sender<()>,
}

impl Live for Top {
    fn draw(&self, frame: &mut Frame<'_>) {
        zone_map::draw(frame, &self.snapshot, &self.view);
    }

    fn tick(&mut self) -> Option<bool> {
        if self.interrupt.is_wished() {
            return None;
        }
        let Ok(look) = self.looks.try_recv() else {
            return Some(false);
        };
        self.view.problem = look
            .map(|look| self.snapshot = look)
            .err()
            .map(|e| e.message);
        Some(true)
    }

    fn press(&mut self, key: KeyCode) {
        match key {
            KeyCode::Char(' ') => _ = self.look_now.send(()),
            key => self.view.press(key, &self.snapshot),
        }
    }
}

/// Shows looks at `source`, `first` being one already, until somebody leaves.
pub fn show(source: Source<Client>, first: Snapshot, interval: Duration) -> CommandResult {
    let (give, looks) = sync_channel(1);
    let (look_now, asked) = channel();
    let interrupt = Interrupt::listen()?;
    // It ends with the process at the latest: a look changes nothing.
    std::thread::spawn(move || watch(source, interval, &give, &asked));
    Ok(terminal::live::show(&mut Top {
        snapshot: first,
        view: View {
            // Without colours blocks would not say whose a zone is.
            letters: std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
            ..View::default()
        },
        interrupt,
        looks,
        look_now,
    })?)
}

/// Looks again and again, until nobody wants to know.
fn watch(
    mut source: Source<Client>,
    interval: Duration,
    give: &SyncSender<Look>,
    asked: &Receiver<()>,
) {
    let gone = |waited| matches!(waited, Err(RecvTimeoutError::Disconnected));
    while !gone(asked.recv_timeout(interval)) {
        let look = source.look().map_err(CommandError::from);
        if give.send(look).is_err() {
            return;
        }
    }
}
