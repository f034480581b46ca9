//! `store top`: live statistics of a served drive.

use crate::args::StoreTop;
use crate::drive_file;
use crate::errors::{CommandError, CommandResult, fail};
use crate::live_lines;
use crate::output::Output;
use control::api::Kind;
use control::{Client, ClientError, Opened};
use serde_json::Value;
use terminal::live::can_draw;
use terminal::shell_word;

/// Number of logged requests: in a single print, and at most on a screen.
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
    let first = match client.status() {
        // A daemon for OpenStack Swift, or a server that was told to have none.
        Err(ClientError::Answered {
            kind: Kind::UnknownCall,
            ..
        }) => {
            let (shown, word) = (path.display(), shell_word(path));
            return fail!(
                Failed, "{shown}: its server has no status page";
                "`zonestore store df|health {word}`, `zonestore store clean --status {word}` and `zonestore fs top {word}` ask it"
            );
        }
        status => status?,
    };
    if arguments.once || out.is_json() || !can_draw() {
        for line in status::lines(&first, REQUESTS.0)? {
            out.line(format_args!("{line}"))?;
        }
        return out.value(&first);
    }
    show(client, &first, arguments)
}

fn show(client: Client, first: &Value, arguments: &StoreTop) -> CommandResult {
    let lines = status::lines(first, REQUESTS.1)?;
    live_lines::show(lines, arguments.interval, move || {
        let told = client.status().map_err(CommandError::from)?;
        Ok(status::lines(&told, REQUESTS.1)?)
    })
}
