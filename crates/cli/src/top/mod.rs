//! `fs top`: the zones of a drive as they are used, live.

mod map;
mod picture;
mod plain;
mod screen;
mod snapshot;
mod source;
mod terminal;
pub mod user;

pub use snapshot::{Snapshot, User};
pub use source::Source;

use crate::args::FsTop;
use crate::errors::CommandResult;
use crate::local_file::Destination;
use crate::output::Output;
use std::io::IsTerminal;

/// Shows the drive, once or until somebody leaves.
pub fn run(arguments: &FsTop, out: &mut Output) -> CommandResult {
    let mut source = Source::new(&arguments.drive);
    let first = source.look()?;
    if let Some(path) = &arguments.svg {
        let mut file = Destination::create(path)?;
        file.write(picture::svg(&first).as_bytes())?;
        file.publish()?;
        out.line(format_args!(
            "{}: the map of {}",
            path.display(),
            first.path
        ))?;
        return out.value(&first);
    }
    if arguments.once || out.is_json() || !std::io::stdout().is_terminal() {
        plain::print(&first, out)?;
        return out.value(&first);
    }
    terminal::show(source, first, arguments.interval)
}
