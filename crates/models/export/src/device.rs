//! An exported model: its clock, its data, and the connections of its clients.

use crate::client::{Client, Shared};
use crate::listener::{Listener, Stream};
use crate::protocol::Export;
use crate::server;
use block_device::{PacedDevice, SparseFile};
use drive_model::workload::Counters;
use drive_model::{AnyProfile, BLOCK_BYTES, Model, Time};
use runtime::sync::Mutex;
use runtime::{HashMap, Runtime, thread};
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Limit on concurrent clients; further ones are turned away.
const MOST_CLIENTS: usize = 64;

/// How long a client may take until its first request can come, so that those who say nothing keep nobody out.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// An exported model.
pub struct Device {
    shared: Shared,
    clock: Runtime,
    handshake: Duration,
}

/// A client's stream until its handshake ends.
struct Handshake<'a> {
    stream: &'a mut Stream,
    clock: &'a Runtime,
    /// On the clock.
    until: Duration,
}

/// One of the [places](MOST_CLIENTS) for clients. Dropping it frees it, also if no thread could be started.
struct Place<'a> {
    clients: &'a Mutex<HashMap<u64, Stream>>,
    number: u64,
    counters: &'a Counters,
    left: &'a (dyn Fn() + Sync),
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut clients = self.clients.lock();
        clients.remove(&self.number);
        // Some clients connect once only to ask for the size.
        if clients.is_empty() && self.counters.any() {
            (self.left)();
        }
    }
}

impl Read for Handshake<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_sub(self.clock.now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.limit(Some(left))?;
        self.stream.read(buffer)
    }
}

impl Export {
    /// The properties that clients are told of a model of this profile.
    pub fn of(profile: &AnyProfile, model: &dyn Model) -> Self {
        Self {
            name: profile.name().to_owned(),
            description: profile.description().to_owned(),
            bytes: model.blocks() * BLOCK_BYTES,
            block_bytes: BLOCK_BYTES as u32,
            trims: model.takes_trim(),
            rotational: model.is_rotational(),
        }
    }
}

impl Device {
    /// A model at time `start`, which continues `speed_up` times as fast as the wall clock.
    pub fn new(
        model: Box<dyn Model>,
        start: Time,
        speed_up: f64,
        data: SparseFile,
        counters: Counters,
        runtime: Runtime,
    ) -> Self {
        Self {
            clock: runtime.clone(),
            handshake: HANDSHAKE,
            shared: Shared {
                drive: PacedDevice::new(model, start, speed_up, data, runtime),
                counters,
            },
        }
    }

    /// Serves clients until `stop` can be read from; then ends their connections. `left` is called when the last
    /// client has left and there was a request.
    ///
    /// # Errors
    /// The listener failed.
    pub fn serve(
        &self,
        listener: &Listener,
        export: &Export,
        stop: BorrowedFd<'_>,
        left: &(dyn Fn() + Sync),
    ) -> io::Result<()> {
        let clients: Mutex<HashMap<u64, Stream>> = Mutex::default();
        thread::scope(|scope| {
            let mut number = 0;
            let accepted = loop {
                let stream = match listener.accept(stop) {
                    Ok(Some(stream)) => stream,
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error),
                };
                let kept = match stream.try_clone() {
                    Ok(kept) if clients.lock().len() < MOST_CLIENTS => kept,
                    Ok(_) => {
                        tracing::warn!("a client was turned away: there are too many");
                        continue;
                    }
                    Err(error) => {
                        server::turned_away(&error);
                        continue;
                    }
                };
                number += 1;
                clients.lock().insert(number, kept);
                let place = Place {
                    clients: &clients,
                    number,
                    counters: &self.shared.counters,
                    left,
                };
                let serve = move || {
                    let _place = place;
                    self.one_client(stream, export);
                };
                if let Err(error) = thread::spawn_scoped(scope, serve) {
                    server::turned_away(&error);
                }
            };
            self.shared.drive.stop();
            clients.lock().values().for_each(Stream::shut_down);
            accepted
        })
    }

    fn one_client(&self, stream: Stream, export: &Export) {
        let mut input = stream;
        let served = input
            .try_clone()
            .inspect_err(server::turned_away)
            .map_err(server::ServeError::from)
            .and_then(|mut output| {
                let client = Client::new(&self.shared);
                let mut handshake = Handshake {
                    stream: &mut input,
                    clock: &self.clock,
                    until: self.clock.now() + self.handshake,
                };
                let transmits = server::negotiate(&mut handshake, &mut output, export);
                let transmits = transmits.and_then(|transmits| {
                    input.limit(None)?;
                    Ok(transmits)
                });
                server::transmit(transmits, &mut input, &mut output, export, &client)
            });
        // A client that was killed is not an error of the drive.
        if let Err(error) = served {
            tracing::debug!(%error, "a client");
        }
        input.shut_down();
    }

    /// The final state of the model, its time, and the counters.
    pub fn finish(self) -> (Box<dyn Model>, Time, Counters) {
        let (model, end) = self.shared.drive.finish();
        (model, end, self.shared.counters)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;

    /// Bytes that a client gets whose handshake and disconnection are in the socket already.
    fn answered(handshake: Duration) -> (usize, Option<Duration>) {
        let profile = AnyProfile::named("seagate-cmr").unwrap();
        let model = profile.model(1).unwrap();
        let export = Export::of(&profile, &*model);
        let data = SparseFile::unnamed(export.bytes).unwrap();
        let counters = Counters::new().unwrap();
        let device = Device {
            handshake,
            ..Device::new(model, Time::START, 1.0, data, counters, Runtime::system())
        };
        let (mut client, server) = UnixStream::pair().unwrap();
        let kept = server.try_clone().unwrap();
        // Flags of both sides, then a list of exports.
        client.write_all(&3u32.to_be_bytes()).unwrap();
        client.write_all(b"IHAVEOPT").unwrap();
        client.write_all(&[0, 0, 0, 3, 0, 0, 0, 0]).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        device.one_client(Stream::Unix(server), &export);
        let mut bytes = Vec::new();
        client.read_to_end(&mut bytes).unwrap();
        (bytes.len(), kept.read_timeout().unwrap())
    }

    #[test]
    fn a_handshake_takes_no_longer_than_it_may_and_what_follows_has_no_limit() {
        let (greeting, _) = answered(Duration::ZERO);
        assert_eq!(greeting, 18);
        let (more, limit) = answered(Duration::from_secs(3_600));
        assert!(more > greeting && limit.is_none());
    }
}
