//! A live view of text lines.

use crate::errors::CommandResult;
use ratatui::Frame;
use ratatui::text::{Line, Text};
use std::time::Duration;
use terminal::Interrupt;
use terminal::live::{KeyCode, Live, Looks};

struct Lines {
    lines: Vec<String>,
    problem: Option<String>,
    interrupt: Interrupt,
    looks: Looks<CommandResult<Vec<String>>>,
}

impl Live for Lines {
    fn draw(&self, frame: &mut Frame<'_>) {
        let lines = self.problem.iter().chain(&self.lines);
        let text: Text<'_> = lines.map(|line| Line::raw(line.as_str())).collect();
        frame.render_widget(text, frame.area());
    }

    fn tick(&mut self) -> Option<bool> {
        if self.interrupt.is_wished() {
            return None;
        }
        let Some(look) = self.looks.taken() else {
            return Some(false);
        };
        self.problem = match look {
            Ok(lines) => {
                self.lines = lines;
                None
            }
            Err(error) => Some(error.message),
        };
        Some(true)
    }

    fn press(&mut self, key: KeyCode) {
        if key == KeyCode::Char(' ') {
            self.looks.look_now();
        }
    }
}

/// Shows lines until the user leaves, and updates them with the result of `look` at this interval.
pub fn show(
    lines: Vec<String>,
    interval: Duration,
    look: impl FnMut() -> CommandResult<Vec<String>> + Send + 'static,
) -> CommandResult {
    Ok(terminal::live::show(&mut Lines {
        lines,
        problem: None,
        interrupt: Interrupt::listen()?,
        looks: Looks::every(interval, look)?,
    })?)
}
