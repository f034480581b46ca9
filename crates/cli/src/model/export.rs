//! `zonestore model export`: exports a model as a block device for NBD clients.
//!
//! Order: profile, state, socket, data; then the line with the address. A signal ends the connections;
//! then the state is saved and the statistics are printed.

use super::report::report;
use crate::args::ModelExport;
use crate::errors::{CommandError, CommandResult, Exit, fail, sorted};
use crate::occupant;
use crate::output::{Output, tell};
use block_device::{DataError, SparseFile};
use drive_model::AnyProfile;
use drive_model::workload::Counters;
use export::protocol::Export;
use export::{Address, Device, Listener};
use runtime::Runtime;
use serde_json::json;
use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use terminal::{Interrupt, human};

/// Exports a model until a signal comes or, with `--once`, the client has gone.
pub fn run(arguments: &ModelExport, out: &mut Output) -> CommandResult {
    let profile = super::find(&arguments.drive.profile)?;
    refuse_others(&profile)?;
    let (model, start, state) = super::start(&profile, &arguments.drive)?;
    if let (Some(state), Some(data)) = (&state, &arguments.data)
        && state.is_at(data)
    {
        let shown = data.display();
        return fail!(Usage, "{shown}: --data and --state are the same file"; "name two files");
    }
    let export = Export::of(&profile, &*model);
    // A signal, or any other reason to stop, leaves a byte here.
    let (end_wished, wish) = UnixStream::pair()?;
    Interrupt::listen()?.leave_bytes_in(&wish)?;
    let listener = listen(&arguments.nbd)?;
    let data = match &arguments.data {
        Some(path) => {
            occupant::refuse(path)?;
            SparseFile::named(path, export.bytes)?
        }
        None => SparseFile::unnamed(export.bytes)?,
    };
    let before = model.statistics();
    let counters = Counters::new().map_err(|error| CommandError::new(Exit::Failed, error))?;
    let device = Device::new(
        model,
        start,
        arguments.speed_up,
        data,
        counters,
        Runtime::system(),
    );
    announce(arguments, &export, &listener);
    let left = || {
        if arguments.once {
            // If the socket is full, it has a byte already.
            let _ = (&wish).write(&[0]);
        }
    };
    let served = device.serve(&listener, &export, end_wished.as_fd(), &left);
    drop(listener);
    let (model, end, counters) = device.finish();
    let saved = state.map_or(Ok(()), |state| state.save(&profile, &*model, end));
    let facts = json!({
        "profile": profile.name(), "speed_up": arguments.speed_up,
        "seconds": end.since(start).seconds(),
    });
    let did = model.statistics().since(&before);
    report(&counters, &did, facts, out)?;
    served?;
    Ok(saved?)
}

/// Refuses models that do not work as ordinary block devices.
fn refuse_others(profile: &AnyProfile) -> CommandResult {
    let (name, class) = (profile.name(), profile.class());
    let Some(why) = class.why_no_block_device() else {
        return Ok(());
    };
    fail!(
        Refused, "{name} is {}: {why}", class.name();
        "`zonestore model list` says which can be exported; `zonestore drive create --profile` makes zoned drives"
    )
}

fn listen(text: &str) -> CommandResult<Listener> {
    let address = Address::parse(text)
        .map_err(|error| CommandError::new(Exit::Usage, format_args!("--nbd {text:?}: {error}")))?;
    Listener::bind(&address).map_err(|error| {
        let failed = CommandError::file(Path::new(text), &error);
        match error.kind() {
            ErrorKind::AddrInUse => failed.hint("somebody listens there; --nbd names another"),
            ErrorKind::AlreadyExists => {
                failed.hint("it is no socket that a killed process left, and was left alone")
            }
            _ => failed.hint("write the path of a socket to be made, or HOST:PORT"),
        }
    })
}

/// Prints the address on standard error, because it is not the result.
fn announce(arguments: &ModelExport, export: &Export, listener: &Listener) {
    let data = match &arguments.data {
        Some(path) => format!("data in {}", path.display()),
        None => format!(
            "data in a file without a name in {}, gone at the end",
            std::env::temp_dir().display()
        ),
    };
    tell(format_args!(
        "zonestore: {} ({}) at {listener}\nzonestore: {data}; Ctrl-C ends",
        export.name,
        human(export.bytes)
    ));
}

impl From<DataError> for CommandError {
    fn from(error: DataError) -> Self {
        use DataError as E;
        match &error {
            E::File { path, source } => return Self::file(path, source),
            E::Unnamed { folder, source } => {
                return Self::file(folder, source).hint(
                    "the data of the drive is kept there (TMPDIR); --data FILE names another place",
                );
            }
            _ => {}
        }
        sorted! { error:
            E::Other { bytes, .. } => Refused, format!(
                "nothing was written to it; it would be a file of {bytes} bytes, or an empty one"
            );
            _ => Busy, "stop the other export";
        }
    }
}
