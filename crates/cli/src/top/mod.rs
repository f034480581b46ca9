//! `fs top`: a live view of a drive's zones and their use.

mod plain;
mod terminal;

use crate::args::FsTop;
use crate::drive_file;
use crate::errors::CommandResult;
use crate::local_file;
use crate::output::Output;
use ::terminal::live::can_draw;
use control::Client;

/// Shows the drive, once or until the user leaves.
pub fn run(arguments: &FsTop, out: &mut Output) -> CommandResult {
    drive_file::check_kind(&arguments.drive)?;
    let mut source = Client::source(&arguments.drive);
    let first = source.look()?;
    if let Some(path) = &arguments.svg {
        local_file::write(path, &zone_map::svg(&first))?;
        out.line(format_args!(
            "{}: the map of {}",
            path.display(),
            first.path
        ))?;
        return out.value(&first);
    }
    if arguments.once || out.is_json() || !can_draw() {
        plain::print(&first, out)?;
        return out.value(&first);
    }
    terminal::show(source, first, arguments.interval)
}
