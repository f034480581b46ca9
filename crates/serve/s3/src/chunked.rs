//! The aws-chunked framing, checked and re-cut before it reaches the signature verifier.
//!
//! The verifier holds a whole chunk in memory before it hands it on, and a client may announce a
//! chunk of 4 GiB. So unsigned chunks are re-cut into small ones here, signed ones (whose size is
//! part of what is signed) are refused above a limit, and the decoded length is checked against
//! the one announced. Pure: bytes in, bytes out.

use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Most bytes of a chunk after unsigned chunks have been re-cut.
pub const PIECE: usize = 64 * 1024;
/// Most bytes of a signed chunk.
pub const MAX_SIGNED_CHUNK: u64 = 1 << 20;
/// Unsigned chunks are re-cut without a copy where so many bytes have come together.
const UNCOPIED: usize = 4 * 1024;
/// Most bytes of a chunk's head.
const MAX_HEAD: usize = 1024;
/// Most bytes of all trailers.
const MAX_TRAILERS: usize = 16 * 1024;

/// Why a body's framing is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Not aws-chunked.
    Malformed,
    /// A signed chunk above [`MAX_SIGNED_CHUNK`].
    ChunkTooLarge,
    /// More or less data than announced.
    WrongLength,
}

enum State {
    Head,
    Data {
        left: u64,
    },
    /// The line end after a chunk's data, with the number of its bytes read.
    End {
        seen: usize,
    },
    Trailers {
        length: usize,
    },
}

/// Checks and re-cuts the chunks of one body.
pub struct Rechunker {
    signed: bool,
    /// Decoded bytes still expected.
    left: u64,
    state: State,
    head: Vec<u8>,
    pending: BytesMut,
}

impl Rechunker {
    /// For a body of `length` decoded bytes.
    pub fn new(signed: bool, length: u64) -> Self {
        Self {
            signed,
            left: length,
            state: State::Head,
            head: Vec::new(),
            pending: BytesMut::new(),
        }
    }

    /// Takes bytes of the body and appends the re-cut body to `output`.
    pub fn push(&mut self, mut input: Bytes, output: &mut VecDeque<Bytes>) -> Result<(), Fault> {
        while !input.is_empty() {
            match self.state {
                State::Head => {
                    let line_end = input.iter().position(|byte| *byte == b'\n');
                    let taken = input.split_to(line_end.map_or(input.len(), |at| at + 1));
                    if self.head.len() + taken.len() > MAX_HEAD {
                        return Err(Fault::Malformed);
                    }
                    self.head.extend_from_slice(&taken);
                    if line_end.is_some() {
                        self.begin_chunk(output)?;
                    }
                }
                State::Data { left } => {
                    let room = (PIECE - self.pending.len()) as u64;
                    let n = room.min(left).min(input.len() as u64) as usize;
                    let data = input.split_to(n);
                    let left = left - n as u64;
                    // Of signed chunks, the verifier holds all pieces: they have no part of a network packet's buffer.
                    if !self.signed && self.pending.is_empty() && n >= UNCOPIED {
                        self.emit(data, output);
                    } else {
                        self.pending.extend_from_slice(&data);
                        if left == 0 || self.pending.len() == PIECE {
                            let gathered = self.pending.split().freeze();
                            self.emit(gathered, output);
                        }
                    }
                    self.state = if left == 0 {
                        State::End { seen: 0 }
                    } else {
                        State::Data { left }
                    };
                }
                State::End { seen } => {
                    if input.split_to(1)[0] != b"\r\n"[seen] {
                        return Err(Fault::Malformed);
                    }
                    if seen == 1 {
                        self.state = State::Head;
                        if self.signed {
                            output.push_back(Bytes::from_static(b"\r\n"));
                        }
                    } else {
                        self.state = State::End { seen: seen + 1 };
                    }
                }
                State::Trailers { length } => {
                    let length = length + input.len();
                    if length > MAX_TRAILERS {
                        return Err(Fault::Malformed);
                    }
                    self.state = State::Trailers { length };
                    output.push_back(std::mem::take(&mut input));
                }
            }
        }
        Ok(())
    }

    /// Ends the body; an error if it is incomplete.
    pub fn finish(&self) -> Result<(), Fault> {
        match self.state {
            State::Trailers { .. } => Ok(()),
            _ => Err(Fault::WrongLength),
        }
    }

    fn begin_chunk(&mut self, output: &mut VecDeque<Bytes>) -> Result<(), Fault> {
        let size = parse_size(&self.head).ok_or(Fault::Malformed)?;
        self.left = self.left.checked_sub(size).ok_or(Fault::WrongLength)?;
        let head = Bytes::from(std::mem::take(&mut self.head));
        if size == 0 {
            if self.left > 0 {
                return Err(Fault::WrongLength);
            }
            output.push_back(head);
            self.state = State::Trailers { length: 0 };
            return Ok(());
        }
        if self.signed {
            if size > MAX_SIGNED_CHUNK {
                return Err(Fault::ChunkTooLarge);
            }
            output.push_back(head);
        }
        self.state = State::Data { left: size };
        Ok(())
    }

    /// Passes data on: as a chunk of its own, or as part of a signed one.
    fn emit(&self, data: Bytes, output: &mut VecDeque<Bytes>) {
        if self.signed {
            output.push_back(data);
        } else {
            output.push_back(Bytes::from(format!("{:x}\r\n", data.len())));
            output.push_back(data);
            output.push_back(Bytes::from_static(b"\r\n"));
        }
    }
}

/// The size in a chunk's head: hexadecimal up to `;` or the line end.
fn parse_size(head: &[u8]) -> Option<u64> {
    let line = head.strip_suffix(b"\r\n")?;
    let digits = line.split(|byte| *byte == b';').next()?;
    let text = std::str::from_utf8(digits).ok()?;
    let plain = !text.is_empty() && text.len() <= 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
    if plain {
        u64::from_str_radix(text, 16).ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn recut(signed: bool, length: u64, body: &[u8], cut: usize) -> Result<Vec<Bytes>, Fault> {
        let mut rechunker = Rechunker::new(signed, length);
        let mut output = VecDeque::new();
        for piece in body.chunks(cut.max(1)) {
            rechunker.push(Bytes::copy_from_slice(piece), &mut output)?;
        }
        rechunker.finish()?;
        Ok(output.into())
    }

    fn chunks(data: &[u8], size: usize, trailers: &str) -> Vec<u8> {
        let mut out = Vec::new();
        for chunk in data.chunks(size) {
            out.extend(format!("{:x}\r\n", chunk.len()).bytes());
            out.extend(chunk);
            out.extend(b"\r\n");
        }
        out.extend(b"0\r\n");
        out.extend(trailers.bytes());
        out.extend(b"\r\n");
        out
    }

    /// The slow, obvious reader.
    fn decode(body: &[u8]) -> (Vec<u8>, usize, String) {
        let (mut data, mut at, mut largest) = (Vec::new(), 0, 0);
        loop {
            let end = at + body[at..].iter().position(|b| *b == b'\n').unwrap();
            let size = usize::from_str_radix(std::str::from_utf8(&body[at..end - 1]).unwrap(), 16)
                .unwrap();
            at = end + 1;
            if size == 0 {
                return (
                    data,
                    largest,
                    String::from_utf8(body[at..].to_vec()).unwrap(),
                );
            }
            largest = largest.max(size);
            data.extend(&body[at..at + size]);
            assert_eq!(&body[at + size..at + size + 2], b"\r\n");
            at += size + 2;
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn unsigned_chunks_are_recut(len in 0usize..200_000, size in 1usize..250_000, cut in 1usize..9000) {
            let data: Vec<u8> = (0..len).map(|n| (n * 7 % 251) as u8).collect();
            let size = size.max(len / 50 + 1);
            let body = chunks(&data, size, "x-amz-checksum-crc32:AAAAAA==\r\n");
            let out = recut(false, len as u64, &body, cut).unwrap().concat();
            let (decoded, largest, trailers) = decode(&out);
            prop_assert_eq!(decoded, data);
            prop_assert!(largest <= PIECE);
            prop_assert_eq!(trailers, "x-amz-checksum-crc32:AAAAAA==\r\n\r\n");
        }

        #[test]
        fn signed_chunks_pass_unchanged(len in 0usize..5000, size in 1usize..900, cut in 1usize..700) {
            let data = vec![5u8; len];
            let body = chunks(&data, size, "");
            prop_assert_eq!(recut(true, len as u64, &body, cut).unwrap().concat(), body);
        }

        #[test]
        fn anything_is_taken(body in prop::collection::vec(any::<u8>(), 0..200), signed: bool, cut in 1usize..20) {
            let _ = recut(signed, 100, &body, cut);
        }

        #[test]
        fn every_truncation_is_noticed(keep in 0usize..60) {
            let body = chunks(b"hello world", 4, "");
            // The line end behind the last chunk's head is all that may be missing.
            if keep < body.len() - 2 {
                prop_assert_eq!(recut(false, 11, &body[..keep], 7), Err(Fault::WrongLength));
            }
        }
    }

    #[test]
    fn lengths_must_agree() {
        let body = chunks(b"hello", 3, "");
        assert_eq!(recut(false, 4, &body, 100), Err(Fault::WrongLength));
        assert_eq!(recut(false, 6, &body, 100), Err(Fault::WrongLength));
    }

    #[test]
    fn huge_chunks_stay_small_in_memory() {
        let head = b"ffffffffffff;chunk-signature=00\r\n";
        assert_eq!(recut(true, u64::MAX, head, 100), Err(Fault::ChunkTooLarge));
        let mut rechunker = Rechunker::new(false, u64::MAX);
        let mut output = VecDeque::new();
        rechunker
            .push(Bytes::from_static(b"ffffffffffff\r\n"), &mut output)
            .unwrap();
        for _ in 0..100 {
            rechunker
                .push(Bytes::from(vec![0; 10_000]), &mut output)
                .unwrap();
        }
        assert!(output.iter().all(|piece| piece.len() <= PIECE));
        assert!(rechunker.pending.len() < PIECE);
    }

    #[test]
    fn nonsense_is_malformed() {
        for body in [
            "xyz\r\n",
            "5\nhello",
            "-5\r\n",
            "+5\r\n",
            "\r\n",
            "3\r\nabcX\r\n",
            "11111111111111111\r\n",
        ] {
            assert_eq!(
                recut(false, 100, body.as_bytes(), 3),
                Err(Fault::Malformed),
                "{body:?}"
            );
        }
        let long = vec![b'1'; 2000];
        assert_eq!(recut(false, 100, &long, 100), Err(Fault::Malformed));
        let mut trailers = b"0\r\n".to_vec();
        trailers.extend(vec![b'a'; 20_000]);
        assert_eq!(recut(false, 0, &trailers, 100), Err(Fault::Malformed));
    }
}
