//! `fs top` on a terminal.

use crate::errors::{CommandError, CommandResult};
use control::Client;
use inspect::{Snapshot, Source};
use ratatui::Frame;
use std::time::Duration;
use terminal::Interrupt;
use terminal::live::{KeyCode, Live, Looks};
use zone_map::View;

struct Top {
    snapshot: Snapshot,
    view: View,
    interrupt: Interrupt,
    looks: Looks<CommandResult<Snapshot>>,
}

impl Live for Top {
    fn draw(&self, frame: &mut Frame<'_>) {
        zone_map::draw(frame, &self.snapshot, &self.view);
    }

    fn tick(&mut self) -> Option<bool> {
        if self.interrupt.is_wished() {
            return None;
        }
        let Some(look) = self.looks.taken() else {
            return Some(false);
        };
        let look = look.map(|look| self.snapshot = look);
        self.view.problem = look.err().map(|error| error.message);
        Some(true)
    }

    fn press(&mut self, key: KeyCode) {
        match key {
            KeyCode::Char(' ') => self.looks.look_now(),
            key => self.view.press(key, &self.snapshot),
        }
    }
}

/// Shows `first`, and then updates from `source`, until the user leaves.
pub fn show(mut source: Source<Client>, first: Snapshot, interval: Duration) -> CommandResult {
    let interrupt = Interrupt::listen()?;
    Ok(terminal::live::show(&mut Top {
        snapshot: first,
        view: View {
            // Without colours, letters have to show the owner of a zone.
            ascii: !terminal::live::has_utf8(),
            letters: std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
            ..View::default()
        },
        interrupt,
        looks: Looks::every(interval, move || source.look().map_err(CommandError::from))?,
    })?)
}
