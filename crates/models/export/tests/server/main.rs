//! The protocol as a client sees it, over bytes in memory and over sockets.
#![allow(clippy::unwrap_used)]

mod clients_that_go;
mod negotiation;
mod requests;
mod sockets;

use export::protocol::{Command, Errno, Export, MAX_PAYLOAD_BYTES, REQUEST_BYTES, Request};
use export::{Address, Answer, Listener, ServeError, Session, Stream, serve};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::io::{Cursor, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::sync::{Condvar, Mutex};

fn export() -> Export {
    Export {
        name: "disk".to_owned(),
        description: "a disk".to_owned(),
        bytes: 1 << 20,
        block_bytes: 4096,
        trims: true,
        rotational: true,
    }
}

/// A device of a mebibyte in memory.
#[derive(Default)]
struct Memory {
    state: Mutex<State>,
    changed: Condvar,
    /// Answers come newest first, so many at a time.
    backwards: usize,
}

#[derive(Default)]
struct State {
    data: Vec<u8>,
    done: VecDeque<(Answer, Vec<u8>)>,
    taken: Vec<Request>,
    ended: bool,
}

impl Session for Memory {
    fn take(&self, request: &Request, payload: &[u8]) {
        let mut state = self.state.lock().unwrap();
        state.data.resize(1 << 20, 0);
        let (at, length) = (request.offset as usize, request.length as usize);
        let mut read = Vec::new();
        match request.command {
            Command::Read => read = state.data[at..at + length].to_vec(),
            Command::Write => state.data[at..at + length].copy_from_slice(payload),
            Command::Trim => state.data[at..at + length].fill(0),
            _ => {}
        }
        state.taken.push(*request);
        let answer = Answer {
            cookie: request.cookie,
            result: Ok(()),
        };
        state.done.push_back((answer, read));
        self.changed.notify_all();
    }

    fn refuse(&self, cookie: u64, errno: Errno) {
        let mut state = self.state.lock().unwrap();
        let result = Err(errno);
        state
            .done
            .push_back((Answer { cookie, result }, vec![1, 2, 3]));
        self.changed.notify_all();
    }

    fn answer(&self, data: &mut Vec<u8>) -> Option<Answer> {
        let mut state = self.state.lock().unwrap();
        while state.done.len() < self.backwards.max(1) && !state.ended {
            state = self.changed.wait(state).unwrap();
        }
        let (answer, read) = if self.backwards > 0 {
            state.done.pop_back()?
        } else {
            state.done.pop_front()?
        };
        *data = read;
        Some(answer)
    }

    fn end(&self) {
        self.state.lock().unwrap().ended = true;
        self.changed.notify_all();
    }
}

/// What a client sends, put together.
#[derive(Default)]
struct Client(Vec<u8>);

impl Client {
    fn flags(mut self, flags: u32) -> Self {
        self.0.extend(flags.to_be_bytes());
        self
    }

    fn option(mut self, option: u32, data: &[u8]) -> Self {
        self.0.extend(b"IHAVEOPT");
        self.0.extend(option.to_be_bytes());
        self.0.extend((data.len() as u32).to_be_bytes());
        self.0.extend(data);
        self
    }

    fn go(self, name: &str, wanted: &[u16]) -> Self {
        let mut data = (name.len() as u32).to_be_bytes().to_vec();
        data.extend(name.as_bytes());
        data.extend((wanted.len() as u16).to_be_bytes());
        data.extend(wanted.iter().flat_map(|kind| kind.to_be_bytes()));
        self.option(7, &data)
    }

    fn request(mut self, head: (u16, u16), cookie: u64, range: (u64, u32), payload: &[u8]) -> Self {
        self.0.extend(0x2560_9513u32.to_be_bytes());
        self.0.extend(head.0.to_be_bytes());
        self.0.extend(head.1.to_be_bytes());
        self.0.extend(cookie.to_be_bytes());
        self.0.extend(range.0.to_be_bytes());
        self.0.extend(range.1.to_be_bytes());
        self.0.extend(payload);
        self
    }

    /// What the server answers, and how it ended.
    fn talk(self) -> (Answers, Result<(), ServeError>, Memory) {
        let (memory, mut output) = (Memory::default(), Vec::new());
        let result = serve(&mut Cursor::new(self.0), &mut output, &export(), &memory);
        (Answers(output.into()), result, memory)
    }
}

/// Bytes of the server's, taken from the front.
struct Answers(VecDeque<u8>);

impl Answers {
    fn bytes(&mut self, count: usize) -> Vec<u8> {
        assert!(self.0.len() >= count, "{} are left", self.0.len());
        self.0.drain(..count).collect()
    }

    fn number(&mut self, bytes: usize) -> u64 {
        let bytes = self.bytes(bytes);
        bytes
            .iter()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    }

    fn greeting(&mut self) {
        assert_eq!(self.bytes(16), b"NBDMAGICIHAVEOPT");
        assert_eq!(self.number(2), 3);
    }

    /// The answer to an option: its kind and data.
    fn option(&mut self, option: u64) -> (u64, Vec<u8>) {
        assert_eq!(self.number(8), 0x0003_e889_0455_65a9);
        assert_eq!(self.number(4), option);
        let kind = self.number(4);
        let length = self.number(4) as usize;
        (kind, self.bytes(length))
    }

    /// The head of the answer to a request: error and cookie.
    fn reply(&mut self) -> (u64, u64) {
        assert_eq!(self.number(4), 0x6744_6698);
        (self.number(4), self.number(8))
    }
}

const READ: u16 = 0;

const WRITE: u16 = 1;

fn started() -> Client {
    Client::default().flags(3).go("", &[])
}
