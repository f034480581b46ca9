//! `zonestore model export`: a model becomes a block device that any NBD client can use.
//!
//! Order: profile, state, socket, data; then the line with the address. A signal ends the connections;
//! then the state is saved and the statistics are printed.

use super::data::Data;
use super::session::{Client, Shared};
use super::state_file;
use super::statistics::Counters;
use crate::args::ModelExport;
use crate::errors::{CommandError, CommandResult, Exit};
use crate::output::Output;
use drive_model::{AnyProfile, BLOCK_BYTES, Paced};
use nbd::protocol::Export;
use nbd::{Address, Listener, Stream};
use parking_lot::Mutex;
use runtime::Runtime;
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::collections::HashMap;
use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

/// Most clients at a time; further ones are turned away.
const MOST_CLIENTS: usize = 64;

/// Exports a model until a signal comes or, with `--once`, the client has gone.
pub fn run(arguments: &ModelExport, out: &mut Output) -> CommandResult {
    let profile = super::find(&arguments.drive.profile)?;
    refuse_others(&profile)?;
    let (model, start, state) = state_file::start(&profile, &arguments.drive)?;
    if let (Some(state), Some(data)) = (&state, &arguments.data)
        && state.is_at(data)
    {
        let same = format_args!("{}: --data and --state are the same file", data.display());
        return Err(CommandError::new(Exit::Usage, same).hint("name two files"));
    }
    let bytes = model.blocks() * BLOCK_BYTES;
    let export = Export {
        name: profile.name().to_owned(),
        description: profile.description().to_owned(),
        bytes,
        block_bytes: BLOCK_BYTES as u32,
        trims: model.takes_trim(),
        rotational: model.is_rotational(),
    };
    let signals = Signals::listen()?;
    let listener = listen(&arguments.nbd)?;
    let data = match &arguments.data {
        Some(path) => Data::named(path, bytes)?,
        None => Data::unnamed(bytes)?,
    };
    let before = model.statistics();
    let shared = Shared {
        drive: Paced::new(model, start, arguments.speed_up, Runtime::system()),
        data,
        counters: Counters::new()?,
        held: AtomicUsize::new(0),
    };
    announce(arguments, &export, &listener);
    let served = serve(&listener, &signals, &export, &shared, arguments.once);
    drop(listener);
    let (model, end) = shared.drive.finish();
    let saved = state.map_or(Ok(()), |state| state.save(&profile, &*model, end));
    let facts = json!({
        "profile": profile.name(), "speed_up": arguments.speed_up,
        "seconds": end.since(start).seconds(),
    });
    let did = model.statistics().since(&before);
    shared.counters.report(&did, facts, out)?;
    served.and(saved)
}

/// Models that are no block devices for everybody.
fn refuse_others(profile: &AnyProfile) -> CommandResult {
    let class = profile.class();
    if class.takes_any_write() {
        return Ok(());
    }
    let why = match class {
        drive_model::Class::CaveatScriptor => {
            "a write damages what lies behind it, and NBD cannot say so"
        }
        _ => "it has zones that are written in order, and NBD has no zones",
    };
    let refused = CommandError::new(
        Exit::Refused,
        format_args!("{} is {}: {why}", profile.name(), class.name()),
    );
    let hint = match class {
        drive_model::Class::CaveatScriptor => "`zonestore model list` says which can be exported",
        _ => {
            "`zonestore model list` says which can be exported; zoned drives are made by \
             `zonestore drive create --profile`"
        }
    };
    Err(refused.hint(hint))
}

fn listen(text: &str) -> CommandResult<Listener> {
    let address = Address::parse(text)
        .map_err(|error| CommandError::new(Exit::Usage, format_args!("--nbd {text:?}: {error}")))?;
    Listener::bind(&address).map_err(|error| {
        let failed = CommandError::file(Path::new(text), &error);
        match error.kind() {
            ErrorKind::AddrInUse => failed.hint("somebody listens there; --nbd names another"),
            ErrorKind::AlreadyExists => failed.hint("it is no socket, and was left alone"),
            _ => failed.hint("write the path of a socket to be made, or HOST:PORT"),
        }
    })
}

/// On standard error, for it is not the result.
fn announce(arguments: &ModelExport, export: &Export, listener: &Listener) {
    let data = match &arguments.data {
        Some(path) => format!("data in {}", path.display()),
        None => format!(
            "data in a file without a name in {}, gone at the end",
            std::env::temp_dir().display()
        ),
    };
    eprintln!(
        "zonestore: {} ({}) at {listener}\nzonestore: {data}; Ctrl-C ends",
        export.name,
        crate::size::human(export.bytes)
    );
}

/// Where a signal, or anybody else who wants an end, leaves a byte.
struct Signals {
    end: UnixStream,
    wish: UnixStream,
}

impl Signals {
    fn listen() -> CommandResult<Self> {
        let (end, wish) = UnixStream::pair()?;
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the second signal finds what the first one has set.
            signal_hook::flag::register_conditional_shutdown(
                signal,
                Exit::Failed as i32,
                asked.clone(),
            )?;
            signal_hook::flag::register(signal, asked.clone())?;
            signal_hook::low_level::pipe::register(signal, wish.try_clone()?)?;
        }
        Ok(Self { end, wish })
    }

    fn wish_an_end(&self) {
        // If there is no room for one more byte, there is one already.
        let _ = (&self.wish).write(&[0]);
    }
}

/// Serves clients until the end is wished for; then ends their connections.
fn serve(
    listener: &Listener,
    signals: &Signals,
    export: &Export,
    shared: &Shared,
    once: bool,
) -> CommandResult {
    let clients: Mutex<HashMap<u64, Stream>> = Mutex::default();
    std::thread::scope(|scope| {
        let mut number = 0;
        let accepted = loop {
            let stream = match listener.accept(signals.end.as_fd()) {
                Ok(Some(stream)) => stream,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error.into()),
            };
            let kept = match stream.try_clone() {
                Ok(kept) if clients.lock().len() < MOST_CLIENTS => kept,
                _ => {
                    tracing::warn!("a client was turned away: there are too many");
                    continue;
                }
            };
            number += 1;
            clients.lock().insert(number, kept);
            let clients = &clients;
            scope.spawn(move || {
                one_client(stream, export, shared);
                let mut clients = clients.lock();
                clients.remove(&number);
                // Some connect once to see how large it is, and again to use it.
                if once && clients.is_empty() && shared.counters.any() {
                    signals.wish_an_end();
                }
            });
        };
        shared.drive.stop();
        clients.lock().values().for_each(Stream::shut_down);
        accepted
    })
}

fn one_client(stream: Stream, export: &Export, shared: &Shared) {
    let mut input = stream;
    let served = input
        .try_clone()
        .map_err(nbd::ServeError::from)
        .and_then(|mut output| nbd::serve(&mut input, &mut output, export, &Client::new(shared)));
    // A client that was killed is no fault of the drive's.
    if let Err(error) = served {
        tracing::debug!(%error, "a client");
    }
    input.shut_down();
}
