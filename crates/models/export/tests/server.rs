//! The protocol as a client sees it, over bytes in memory and over sockets.
#![allow(clippy::unwrap_used)]

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
const DISCONNECT: u16 = 2;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;

fn started() -> Client {
    Client::default().flags(3).go("", &[])
}

fn after_start(mut answers: Answers) -> Answers {
    answers.greeting();
    assert_eq!(answers.option(7).0, 3);
    assert_eq!(answers.option(7).0, 1);
    answers
}

#[test]
fn the_export_tells_what_it_is() {
    let client = Client::default()
        .flags(3)
        .option(3, &[])
        .go("disk", &[1, 2, 3]);
    let (mut answers, result, _) = client.talk();
    result.unwrap();
    answers.greeting();
    assert_eq!(answers.option(3), (2, b"\0\0\0\x04disk".to_vec()));
    assert_eq!(answers.option(3), (1, vec![]));
    // Size; flags, flush, FUA, rotational, trim, several connections.
    let size = (1u64 << 20).to_be_bytes();
    let mut expected = vec![0, 0];
    expected.extend(size);
    expected.extend([0x01, 0x3d]);
    assert_eq!(answers.option(7), (3, expected));
    assert_eq!(answers.option(7), (3, b"\0\x01disk".to_vec()));
    assert_eq!(answers.option(7), (3, b"\0\x02a disk".to_vec()));
    let sizes = [0u16.to_be_bytes().to_vec(), vec![]].concat();
    assert_eq!(sizes, [0, 0]);
    let mut expected = 3u16.to_be_bytes().to_vec();
    for size in [1, 4096, MAX_PAYLOAD_BYTES] {
        expected.extend(size.to_be_bytes());
    }
    assert_eq!(answers.option(7), (3, expected));
    assert_eq!(answers.option(7), (1, vec![]));
    assert!(answers.0.is_empty());
}

#[test]
fn what_is_not_offered_is_refused_and_haggling_goes_on() {
    let client = Client::default()
        .flags(1)
        .option(5, &[])
        .option(8, &[])
        .option(3, b"x")
        .option(6, b"\0\0\0\xffshort")
        .go("other", &[])
        .option(2, &[])
        .option(8, &[]);
    let (mut answers, result, _) = client.talk();
    result.unwrap();
    answers.greeting();
    let error = 1 << 31;
    for (option, kind) in [(5, 1), (8, 1), (3, 3), (6, 3), (7, 6)] {
        assert_eq!(answers.option(option).0, error | kind);
    }
    // Behind an abort nothing is answered.
    assert_eq!(answers.option(2), (1, vec![]));
    assert!(answers.0.is_empty());
}

#[test]
fn the_older_way_to_begin_has_its_zeros() {
    for (flags, zeros) in [(1, 124), (3, 0)] {
        let client = Client::default().flags(flags).option(1, b"disk");
        let (mut answers, result, _) = client.talk();
        result.unwrap();
        answers.greeting();
        assert_eq!(answers.number(8), 1 << 20);
        assert_eq!(answers.number(2), 0x013d);
        assert_eq!(answers.bytes(zeros), vec![0; zeros]);
        assert!(answers.0.is_empty());
    }
    let (mut answers, result, _) = Client::default().flags(3).option(1, b"other").talk();
    result.unwrap();
    answers.greeting();
    assert!(answers.0.is_empty());
}

#[test]
fn requests_are_done() {
    let (answers, result, memory) = started()
        .request((0, WRITE), 11, (4_095, 3), b"abc")
        .request((1, WRITE), 12, (4_096, 1), b"X")
        .request((0, READ), 13, (4_094, 5), &[])
        .request((0, FLUSH), 14, (0, 0), &[])
        .request((0, TRIM), 15, (4_095, 1), &[])
        .request((0, READ), 16, (4_095, 2), &[])
        .request((0, DISCONNECT), 17, (0, 0), &[])
        .request((0, READ), 18, (0, 1), &[])
        .talk();
    result.unwrap();
    let mut answers = after_start(answers);
    assert_eq!(answers.reply(), (0, 11));
    assert_eq!(answers.reply(), (0, 12));
    assert_eq!(answers.reply(), (0, 13));
    assert_eq!(answers.bytes(5), b"\0aXc\0");
    assert_eq!(answers.reply(), (0, 14));
    assert_eq!(answers.reply(), (0, 15));
    assert_eq!(answers.reply(), (0, 16));
    assert_eq!(answers.bytes(2), b"\0X");
    assert!(answers.0.is_empty());
    let taken = memory.state.into_inner().unwrap().taken;
    let durable: Vec<bool> = taken.iter().map(Request::is_fua).collect();
    assert_eq!(durable, [false, true, false, false, false, false]);
}

#[test]
fn what_cannot_be_done_is_answered_without_data() {
    let end = 1 << 20;
    let (answers, result, memory) = started()
        .request((0, READ), 1, (end - 1, 2), &[])
        .request((0, WRITE), 2, (end - 1, 2), b"ab")
        .request((0, READ), 3, (u64::MAX, 2), &[])
        .request((0, READ), 4, (0, 0), &[])
        .request((0, READ), 5, (0, MAX_PAYLOAD_BYTES + 1), &[])
        .request((0, 6), 6, (0, 4096), &[])
        .request((0, 99), 7, (0, 4096), &[])
        .request((2, READ), 8, (0, 1), &[])
        .request((0, READ), 9, (end - 1, 1), &[])
        .talk();
    result.unwrap();
    let mut answers = after_start(answers);
    for (cookie, error) in [
        (1, 22),
        (2, 28),
        (3, 22),
        (4, 22),
        (5, 22),
        (6, 95),
        (7, 95),
        (8, 22),
    ] {
        assert_eq!(answers.reply(), (error, cookie));
    }
    assert_eq!(answers.reply(), (0, 9));
    assert_eq!(answers.bytes(1), [0]);
    assert!(answers.0.is_empty());
    assert_eq!(memory.state.into_inner().unwrap().taken.len(), 1);
}

#[test]
fn a_client_that_breaks_the_protocol_is_left() {
    for client in [
        Client::default().flags(4),
        Client(vec![
            0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
        ]),
        Client::default().flags(3).option(7, &vec![0; 8193]),
        started().request((0, WRITE), 1, (0, MAX_PAYLOAD_BYTES + 1), &[]),
        Client([started().0, vec![7; REQUEST_BYTES]].concat()),
    ] {
        let (_, result, memory) = client.talk();
        assert!(
            matches!(result, Err(ServeError::Violation(_))),
            "{result:?}"
        );
        assert!(memory.state.into_inner().unwrap().ended);
    }
}

/// A client may go between two messages; in the middle of one it is told apart.
#[test]
fn a_client_may_go_at_any_byte() {
    let all = started()
        .request((0, WRITE), 1, (0, 3), b"abc")
        .request((0, READ), 2, (0, 3), &[])
        .0;
    let borders = [0, 4, 4 + 16 + 6, all.len() - 28, all.len()];
    for length in 0..=all.len() {
        let (_, result, memory) = Client(all[..length].to_vec()).talk();
        assert_eq!(result.is_ok(), borders.contains(&length), "{length}");
        assert!(memory.state.into_inner().unwrap().ended);
    }
}

#[test]
fn requests_may_be_answered_in_any_order() {
    let (mut client, mut server) = UnixStream::pair().unwrap();
    let mut all = started();
    for cookie in 0..40 {
        let byte = [cookie as u8];
        all = all.request((0, WRITE), cookie, (cookie, 1), &byte);
    }
    client.write_all(&all.0).unwrap();
    let memory = Memory {
        backwards: 4,
        ..Memory::default()
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut output = server.try_clone().unwrap();
            serve(&mut server, &mut output, &export(), &memory).unwrap();
        });
        client.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answers = vec![0; 18 + (20 + 12) + 20 + 40 * 16];
        client.read_exact(&mut answers).unwrap();
        let mut answers = after_start(Answers(answers.into()));
        let mut cookies: Vec<u64> = (0..40).map(|_| answers.reply().1).collect();
        assert_ne!(cookies, (0..40).collect::<Vec<u64>>());
        cookies.sort_unstable();
        assert_eq!(cookies, (0..40).collect::<Vec<u64>>());
    });
}

#[test]
fn sockets_are_the_owners_and_replaced_only_when_dead() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let address = Address::Unix(path.clone());
    let listener = Listener::bind(&address).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let kind = Listener::bind(&address).unwrap_err().kind();
    assert_eq!(kind, std::io::ErrorKind::AddrInUse);
    let (stop, mut stopper) = UnixStream::pair().unwrap();
    let mut client = UnixStream::connect(&path).unwrap();
    // Both were left in the queue, or the second attempt's look at the socket is the first client.
    let mut streams = Vec::new();
    while streams.len() < 2 {
        streams.push(listener.accept(stop.as_fd()).unwrap().unwrap());
    }
    client.write_all(b"x").unwrap();
    let heard = streams.iter_mut().any(|stream: &mut Stream| {
        let mut byte = [0];
        matches!(stream.read(&mut byte), Ok(1))
    });
    assert!(heard);
    stopper.write_all(b"x").unwrap();
    assert!(listener.accept(stop.as_fd()).unwrap().is_none());
    drop(listener);
    assert!(!path.exists());
    // Left by a process that was killed.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    drop(Listener::bind(&address).unwrap());
    std::fs::write(&path, "mine").unwrap();
    let kind = Listener::bind(&address).unwrap_err().kind();
    assert_eq!(kind, std::io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read(&path).unwrap(), b"mine");
}

#[test]
fn addresses() {
    let tcp = |text: &str| Address::parse(text) == Ok(Address::Tcp(text.to_owned()));
    assert!(tcp("127.0.0.1:10809") && tcp("[::1]:0") && tcp("host:1"));
    for path in ["d.sock", "/tmp/a:1", "./a:1"] {
        assert_eq!(
            Address::parse(path),
            Ok(Address::Unix(path.into())),
            "{path}"
        );
    }
    for wrong in ["", "a:b", "a:99999", ":x", ":1", "a:"] {
        assert!(Address::parse(wrong).is_err(), "{wrong}");
    }
    let listener = Listener::bind(&Address::parse("127.0.0.1:0").unwrap()).unwrap();
    assert!(listener.to_string().starts_with("nbd://127.0.0.1:"));
}

/// Pieces that make sense, and bytes that do not, in any order.
fn conversation() -> impl Strategy<Value = Vec<u8>> {
    let option = (0u32..12, prop::collection::vec(any::<u8>(), 0..40))
        .prop_map(|(option, data)| Client::default().option(option, &data).0);
    let go = ("[a-z]{0,5}", prop::collection::vec(0u16..6, 0..4))
        .prop_map(|(name, wanted)| Client::default().go(&name, &wanted).0);
    let request = (
        0u16..8,
        0u16..3,
        any::<u64>(),
        0u64..(1 << 20) + 9,
        0u32..70_000,
    )
        .prop_map(|(command, flags, cookie, offset, length)| {
            let payload = vec![7; if command == 1 { length as usize } else { 0 }];
            Client::default()
                .request((flags, command), cookie, (offset, length), &payload)
                .0
        });
    let noise = prop::collection::vec(any::<u8>(), 0..64);
    let start = prop_oneof![
        Just(Client::default().flags(3).0),
        Just(started().0),
        noise.clone()
    ];
    let piece = prop_oneof![3 => request, 1 => option, 1 => go, 1 => noise];
    (start, prop::collection::vec(piece, 0..12))
        .prop_map(|(start, rest)| [start, rest.concat()].concat())
}

proptest! {
    /// Whatever comes, the server ends without a panic, and what it says is whole.
    #[test]
    fn any_bytes_end_well(bytes in conversation()) {
        let (_, _, memory) = Client(bytes).talk();
        prop_assert!(memory.state.into_inner().unwrap().ended);
    }

    #[test]
    fn any_bytes_are_a_request_or_none(mut bytes in any::<[u8; REQUEST_BYTES]>(), real in any::<bool>()) {
        if real {
            bytes[..4].copy_from_slice(&0x2560_9513u32.to_be_bytes());
        }
        match Request::decode(&bytes) {
            Ok(request) => {
                prop_assert!(real);
                prop_assert!(request.payload_bytes() <= MAX_PAYLOAD_BYTES as usize);
                if export().check(&request).is_ok() && request.length > 0 && request.command != Command::Flush
                    && request.command != Command::Disconnect {
                    prop_assert!(request.offset + u64::from(request.length) <= 1 << 20);
                }
            }
            Err(violation) => prop_assert!(!violation.to_string().is_empty()),
        }
    }

    #[test]
    fn any_option_is_answered(option in 0u32..12, data in prop::collection::vec(any::<u8>(), 0..64)) {
        let (bytes, _) = export().answer(option, &data, true);
        prop_assert!(bytes.len() < 1_000);
    }
}
