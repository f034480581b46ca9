//! Makes a backup of a served drive and sends it to the client in frames.
//!
//! The backup is of one moment (a snapshot of the store). Writers that need its space take it: the backup then fails.

use crate::api::{Backup, Kind, Problem};
use crate::frames::frame;
use archive::{PackOptions, Packed, Selection, Since};
use axum::body::Bytes;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::{MomentWatch, Store};
use tokio::runtime::Handle;
use tokio::sync::mpsc::Sender;

/// Most bytes of a frame.
const FRAME: usize = 1 << 20;
/// Interval at which a stop of the server is noticed while the client reads nothing.
const LOOK: Duration = Duration::from_millis(100);

/// Makes the archive; call it on a thread that may block. It ends early if the client disconnects or the server
/// stops.
pub fn run(store: &Store, what: &Backup, to: Sender<Bytes>, stops: Arc<AtomicBool>) {
    let channel = Channel { to, stops };
    let made = pack(store, what, &channel);
    let told = serde_json::to_vec(&made).unwrap_or_default();
    // If this fails, the client has disconnected.
    let _ = channel.send([frame(&[]), told].concat(), || Ok(()));
}

fn pack(store: &Store, what: &Backup, channel: &Channel) -> Result<Packed, Problem> {
    let mut since = match &what.since {
        None => None,
        Some(path) => {
            let since = open(path).map_err(|error| of_since(path, &error))?;
            Some(Since::open(since).map_err(|error| of_since(path, &error))?)
        }
    };
    let options = PackOptions {
        selection: Selection::Backup,
        now_micros: what.now_micros,
        skip_damaged: what.skip_damaged,
        is_served: true,
    };
    let packed = store.at_moment(|moment| {
        let to = Frames {
            channel,
            moment: moment.watch(),
        };
        let mut to = BufWriter::with_capacity(FRAME, to);
        let progress = &mut |_| ();
        let packed = archive::pack_moment(moment, &mut to, &options, since.as_mut(), progress)?;
        to.flush()?;
        Ok(packed)
    });
    packed.map_err(|error| match (&error, &what.since) {
        (archive::Error::Corrupt { .. } | archive::Error::CutOff { .. }, Some(path)) => {
            of_since(path, &error)
        }
        _ => problem(&error),
    })
}

/// Opens regular files only: opening a pipe would block until it has a writer, and with it all later backups.
fn open(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        let why = "a directory, pipe or device, and no file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    File::open(path)
}

/// Error of the archive that the backup builds on; the store has no fault.
fn of_since(path: &Path, error: &dyn Display) -> Problem {
    Problem {
        kind: Kind::Invalid,
        message: format!("--since {}: {error}", path.display()),
        file: None,
    }
}

fn problem(error: &archive::Error) -> Problem {
    use archive::Error as E;
    let kind = match error {
        E::Unreadable { .. } | E::NamesLost { .. } | E::Corrupt { .. } | E::CutOff { .. } => {
            Kind::Damaged
        }
        E::WrongParent { .. } | E::NoArchive | E::Compressed { .. } => Kind::Invalid,
        E::Store(store::Error::MomentGivenUp) => Kind::GivenUp,
        E::Io(error) if error.kind() == io::ErrorKind::ConnectionAborted => Kind::Stopping,
        _ => Kind::Failed,
    };
    Problem {
        kind,
        message: error.to_string(),
        file: None,
    }
}

struct Channel {
    to: Sender<Bytes>,
    stops: Arc<AtomicBool>,
}

impl Channel {
    /// Sends `bytes`; waits for a slow client until the server stops or `goes_on` fails.
    fn send(&self, bytes: Vec<u8>, goes_on: impl Fn() -> io::Result<()>) -> io::Result<()> {
        loop {
            if self.stops.load(Ordering::Relaxed) {
                let why = "the server is stopping";
                return Err(io::Error::new(io::ErrorKind::ConnectionAborted, why));
            }
            goes_on()?;
            match Handle::current().block_on(tokio::time::timeout(LOOK, self.to.reserve())) {
                Err(_) => {}
                Ok(Err(_)) => return Err(io::ErrorKind::BrokenPipe.into()),
                Ok(Ok(place)) => {
                    place.send(Bytes::from(bytes));
                    return Ok(());
                }
            }
        }
    }
}

/// Writes the archive to the client until its moment is given up: writers that need the space do not wait for the
/// client.
struct Frames<'a> {
    channel: &'a Channel,
    moment: &'a MomentWatch,
}

impl Write for Frames<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let lasts = || self.moment.check().map_err(io::Error::other);
        self.channel.send(frame(bytes), lasts)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
