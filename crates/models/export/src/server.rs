//! One connection: the handshake, then requests in and answers out, each on a thread of its own.

use crate::protocol::{
    Command, Errno, Export, Next, OPTION_BYTES, REQUEST_BYTES, Request, Violation, client_flags,
    greeting, option_head, reply,
};
use std::io::{self, IoSlice, Read, Write};
use thiserror::Error;

/// Why a connection ended in the middle of something.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The client broke the protocol.
    #[error("the client sent {0}")]
    Violation(#[from] Violation),
    /// The socket failed, or ended inside a message.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What becomes of the requests of one connection. [`take`](Self::take) is called by one thread,
/// [`answer`](Self::answer) by another.
pub trait Session: Sync {
    /// Takes a request that the export [can do](Export::check), with the bytes that it writes. May wait
    /// until some of those before it are answered.
    fn take(&self, request: &Request, payload: &[u8]);

    /// Takes a request that cannot be done.
    fn refuse(&self, cookie: u64, errno: Errno);

    /// The next request that is answered, `data` being what it read; waits for it. Nothing once the
    /// session [ended](Self::end) and all are.
    fn answer(&self, data: &mut Vec<u8>) -> Option<Answer>;

    /// No more requests come.
    fn end(&self);
}

/// How a request ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// What the client calls it.
    pub cookie: u64,
    /// Whether it was done.
    pub result: Result<(), Errno>,
}

/// Serves one client until it goes, with or without a word.
///
/// # Errors
/// It went in the middle of a message, or broke the protocol. Its requests are done in any case.
pub fn serve(
    input: &mut impl Read,
    output: &mut (impl Write + Send),
    export: &Export,
    session: &impl Session,
) -> Result<(), ServeError> {
    let transmits = negotiate(input, output, export);
    if !matches!(transmits, Ok(true)) {
        session.end();
        return transmits.map(|_| ());
    }
    runtime::thread::scope(|scope| {
        scope.spawn(|| send(output, session));
        let received = receive(input, export, session);
        session.end();
        received
    })
}

/// Fills `bytes`; whether there were any before the stream ended.
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

/// The handshake: whether requests follow.
fn negotiate(
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
        // Read whether the request can be done or not: the next one is behind it.
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

/// Sends answers until there are no more. A client that has gone gets none, and they are waited for
/// all the same, so that nobody waits for room.
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

/// Writes both in as few calls as it takes: a client that sees the head does not wait for the rest.
fn write_both(output: &mut impl Write, head: &[u8], data: &[u8]) -> io::Result<()> {
    let mut parts = [IoSlice::new(head), IoSlice::new(data)];
    let mut parts = &mut parts[..];
    // Takes away what is empty.
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
