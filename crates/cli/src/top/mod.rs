//! `fs top`: the zones of a drive as they are used, live.

mod picture;
mod plain;
mod screen;
mod terminal;

use crate::args::FsTop;
use crate::drive_file;
use crate::errors::{CommandError, CommandResult};
use crate::local_file::Destination;
use crate::output::Output;
use control::{Client, ClientError, api};
use inspect::{LookError, Server};
use runtime::Runtime;
use std::io::IsTerminal;
use std::path::Path;
use store::ZoneUse;
use zone::ZoneDescriptor;

/// A drive, and its server if it has one.
pub type Source = inspect::Source<Asked>;

/// The server of a drive.
pub struct Asked(Client);

impl Server for Asked {
    type Error = ClientError;

    fn pid(&self) -> u32 {
        self.0.hello().pid
    }

    fn zones(&self, first: u32, count: u32) -> Result<Vec<ZoneDescriptor>, ClientError> {
        self.0.zones(first, count)
    }

    fn store_zones(&self, first: u32, count: u32) -> Result<Vec<ZoneUse>, ClientError> {
        self.0.store_zones(first, count)
    }
}

impl From<LookError> for CommandError {
    fn from(error: LookError) -> Self {
        match error {
            LookError::Drive(error) => error.into(),
            LookError::Zone(error) => error.into(),
            LookError::BlueFs(error) => error.into(),
        }
    }
}

/// The drive at `path`, to be looked at.
pub fn source(path: &Path) -> CommandResult<Source> {
    drive_file::check_kind(path)?;
    let connect = |path: &Path| Ok(Client::connect(path)?.map(Asked));
    Ok(Source::new(
        path,
        api::MAX_ZONES,
        connect,
        Runtime::system(),
    ))
}

/// Shows the drive, once or until somebody leaves.
pub fn run(arguments: &FsTop, out: &mut Output) -> CommandResult {
    let mut source = source(&arguments.drive)?;
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
