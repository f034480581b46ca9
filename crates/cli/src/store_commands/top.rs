//! `store top`: what a served drive tells of itself, live.

use crate::args::StoreTop;
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, fail};
use crate::output::Output;
use control::{Client, Opened};
use ratatui::Frame;
use ratatui::text::{Line, Text};
use serde_json::Value;
use std::io::IsTerminal;
use terminal::Interrupt;
use terminal::live::{KeyCode, Live, Looks};

/// Requests of the log that are printed once, and at most on a screen.
const REQUESTS: (usize, usize) = (10, 200);

/// `store top`.
pub fn top(arguments: &StoreTop, out: &mut Output) -> CommandResult {
    let path = &arguments.drive;
    let client = match drive_file::open_or_ask(path, false)? {
        Opened::Served(client) => client,
        Opened::Drive(_) => {
            return fail!(
                NotFound, "{}: nobody serves this drive", path.display();
                "zonestore serve, or look at it with store df and fs top"
            );
        }
    };
    let first = client.status()?;
    if arguments.once || out.is_json() || !std::io::stdout().is_terminal() {
        for line in status::lines(&first, REQUESTS.0)? {
            out.line(format_args!("{line}"))?;
        }
        return out.value(&first);
    }
    show(client, &first, arguments)
}

struct Top {
    lines: Vec<String>,
    problem: Option<String>,
    interrupt: Interrupt,
    looks: Looks<CommandResult<Value>>,
}

impl Live for Top {
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
        let lines = look.and_then(|told| Ok(status::lines(&told, REQUESTS.1)?));
        self.problem = match lines {
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

fn show(client: Client, first: &Value, arguments: &StoreTop) -> CommandResult {
    let look = move || client.status().map_err(CommandError::from);
    Ok(terminal::live::show(&mut Top {
        lines: status::lines(first, REQUESTS.1)?,
        problem: None,
        interrupt: Interrupt::listen()?,
        looks: Looks::every(arguments.interval, look)?,
    })?)
}
