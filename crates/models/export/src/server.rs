//! One connection: the handshake, then one thread that receives requests and one that sends replies.

use crate::protocol::{
    Command, Errno, Export, Next, OPTION_BYTES, REQUEST_BYTES, Request, Violation, client_flags,
    greeting, option_head, reply,
};
use std::io::{self, IoSlice, Read, Write};
use thiserror::Error;

/// Why a connection ended in the middle of a message.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The client broke the protocol.
    #[error("the client sent {0}")]
    Violation(#[from] Violation),
    /// The socket failed, or ended inside a message; or the host can start no more threads.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Handles the requests of one connection. One thread calls [`take`](Self::take), another one
/// [`answer`](Self::answer).
pub trait Session: Sync {
    /// Takes a request that passes [`Export::check`], with the data of a write. May wait until earlier requests are
    /// completed.
    fn take(&self, request: &Request, payload: &[u8]);

    /// Takes a request that fails [`Export::check`].
    fn refuse(&self, cookie: u64, errno: Errno);

    /// Waits for the next completed request and puts the bytes of a read into `data`. `None` once the session has
    /// [ended](Self::end) and all requests are completed.
    fn answer(&self, data: &mut Vec<u8>) -> Option<Answer>;

    /// Notes that no more requests come.
    fn end(&self);
}

/// The result of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// The client's name of the request.
    pub cookie: u64,
    /// Success, or the error.
    pub result: Result<(), Errno>,
}

/// Serves one client until it disconnects, orderly or not.
///
/// # Errors
/// [`ServeError`]: the connection ended in the middle of a message, or the client broke the protocol. Its requests
/// are completed in any case.
pub fn serve(
    input: &mut impl Read,
    output: &mut (impl Write + Send),
    export: &Export,
    session: &impl Session,
) -> Result<(), ServeError> {
    let transmits = negotiate(input, output, export);
    transmit(transmits, input, output, export, session)
}

/// Handles the requests that follow a [handshake](negotiate), if any do.
pub(crate) fn transmit(
    transmits: Result<bool, ServeError>,
    input: &mut impl Read,
    output: &mut (impl Write + Send),
    export: &Export,
    session: &impl Session,
) -> Result<(), ServeError> {
    if !matches!(transmits, Ok(true)) {
        session.end();
        return transmits.map(|_| ());
    }
    runtime::thread::scope(|scope| {
        let started = runtime::thread::spawn_scoped(scope, || send(output, session));
        let started = started.inspect_err(turned_away).map_err(ServeError::from);
        let received = started.and_then(|_| receive(input, export, session));
        session.end();
        received
    })
}

/// Warns that a client gets no thread or too few descriptors.
pub(crate) fn turned_away(error: &io::Error) {
    tracing::warn!(%error, "a client was turned away");
}

/// Fills `bytes`; `false` if the stream ended before the first byte.
fn fill(input: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    let mut filled = 0;
    while filled < bytes.len() {
        match input.read(&mut bytes[filled..]) {
            Ok(0) if filled == 0 => return Ok(false),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// The handshake; `true` if requests follow.
pub(crate) fn negotiate(
    input: &mut impl Read,
    output: &mut impl Write,
    export: &Export,
) -> Result<bool, ServeError> {
    output.write_all(&greeting())?;
    output.flush()?;
    let mut flags = [0; 4];
    if !fill(input, &mut flags)? {
        return Ok(false);
    }
    let no_zeroes = client_flags(flags)?;
    let mut head = [0; OPTION_BYTES];
    let mut data = Vec::new();
    while fill(input, &mut head)? {
        let (option, length) = option_head(&head)?;
        data.resize(length, 0);
        input.read_exact(&mut data)?;
        let (bytes, next) = export.answer(option, &data, no_zeroes);
        output.write_all(&bytes)?;
        output.flush()?;
        match next {
            Next::Haggle => {}
            Next::Transmit => return Ok(true),
            Next::Close => return Ok(false),
        }
    }
    Ok(false)
}

fn receive(
    input: &mut impl Read,
    export: &Export,
    session: &impl Session,
) -> Result<(), ServeError> {
    let mut head = [0; REQUEST_BYTES];
    let mut payload = Vec::new();
    while fill(input, &mut head)? {
        let request = Request::decode(&head)?;
        // The payload is read even if the request cannot be done, because the next request comes after it.
        payload.resize(request.payload_bytes(), 0);
        input.read_exact(&mut payload)?;
        if request.command == Command::Disconnect {
            break;
        }
        match export.check(&request) {
            Ok(()) => session.take(&request, &payload),
            Err(errno) => session.refuse(request.cookie, errno),
        }
    }
    Ok(())
}

/// Sends replies until there are no more. If the client has left, the replies are still drained, so that no thread
/// waits for room.
fn send(output: &mut impl Write, session: &impl Session) {
    let mut data = Vec::new();
    let mut gone = false;
    while let Some(answer) = session.answer(&mut data) {
        if gone {
            continue;
        }
        let head = reply(answer.cookie, answer.result);
        let bytes: &[u8] = if answer.result.is_ok() { &data } else { &[] };
        gone = write_both(output, &head, bytes).is_err();
    }
}

/// Writes head and data with as few calls as possible, so that a client does not wait between the two.
fn write_both(output: &mut impl Write, head: &[u8], data: &[u8]) -> io::Result<()> {
    let mut parts = [IoSlice::new(head), IoSlice::new(data)];
    let mut parts = &mut parts[..];
    // Skips empty parts.
    IoSlice::advance_slices(&mut parts, 0);
    while !parts.is_empty() {
        match output.write_vectored(parts) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => IoSlice::advance_slices(&mut parts, count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    output.flush()
}
