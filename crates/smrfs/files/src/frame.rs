//! The unit of the metadata log: a header of 64 bytes, a payload, zeros up to a whole block.
//! `docs/format/smrfs.md` has the table. What is read never panics.

use codec::{Put, Reader};
use xxhash_rust::xxh3::Xxh3;

/// The newest version. A slot is of the oldest one that has all that is in it, and all that are older are read.
pub const VERSION: u16 = 2;
/// The first eight bytes of each frame.
pub const MAGIC: [u8; 8] = *b"ZSTRAPPD";
/// Bytes in front of the payload.
pub const HEADER: usize = 64;
/// Most bytes of a payload.
pub const MAX_PAYLOAD: usize = 1 << 20;
const FLAG_COMMIT: u8 = 1;

/// What a frame holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The first of a slot: what file system this is.
    Head,
    /// A part of everything.
    Checkpoint,
    /// What changed since.
    Journal,
}

/// The fields of a header but for the lengths and the hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The version of the format, the same in all frames of a slot.
    pub version: u16,
    /// What the frame holds.
    pub kind: Kind,
    /// What came before it in its group counts with it.
    pub is_commit: bool,
    /// Of the slot: one more for each checkpoint.
    pub generation: u64,
    /// In the slot, from 0.
    pub sequence: u64,
    /// Of the mount that wrote it: frames that a crash left behind the end cannot continue another mount's.
    pub nonce: u64,
    /// Hash of the frame before it in its slot; 0 in the first.
    pub previous: u64,
    /// Frames below this sequence were flushed before this one was written.
    pub durable: u64,
}

/// A header as it was read, with what is needed to check the rest.
#[derive(Clone, Copy, Debug)]
pub struct Parsed {
    /// Its fields.
    pub header: Header,
    /// Bytes behind the header.
    pub length: usize,
    /// Over header and payload.
    pub hash: u64,
}

/// Why bytes are no frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoFrame {
    /// They do not begin as one.
    Nothing,
    /// They begin as one of another version.
    Version(u16),
    /// They begin as one, and are not as they were written.
    Damaged,
}

/// Appends a frame to `out`, padded to whole blocks; answers its hash.
pub fn encode(header: &Header, payload: &[u8], block: usize, out: &mut Vec<u8>) -> u64 {
    let start = out.len();
    out.extend_from_slice(&MAGIC);
    out.put_u16(header.version);
    out.push(match header.kind {
        Kind::Head => 1,
        Kind::Checkpoint => 2,
        Kind::Journal => 3,
    });
    out.push(if header.is_commit { FLAG_COMMIT } else { 0 });
    out.put_u32(payload.len() as u32);
    out.put_u64(header.generation);
    out.put_u64(header.sequence);
    out.put_u64(header.nonce);
    out.put_u64(header.previous);
    out.put_u64(header.durable);
    let hash = hash_of(&out[start..], payload);
    out.put_u64(hash);
    out.extend_from_slice(payload);
    let length = (out.len() - start).next_multiple_of(block);
    out.resize(start + length, 0);
    hash
}

/// Reads a header from the first [`HEADER`] bytes, of whatever version. The hash is still to be compared, and then
/// the version: where that alone is damaged it is of no other one.
pub fn parse(bytes: &[u8]) -> Result<Parsed, NoFrame> {
    let mut reader = Reader(bytes);
    if reader.take(8) != Some(&MAGIC) {
        return Err(NoFrame::Nothing);
    }
    match reader.u16() {
        Some(version @ 1..) => fields(version, &mut reader).ok_or(NoFrame::Damaged),
        _ => Err(NoFrame::Damaged),
    }
}

fn fields(version: u16, reader: &mut Reader<'_>) -> Option<Parsed> {
    let kind = match reader.u8()? {
        1 => Kind::Head,
        2 => Kind::Checkpoint,
        3 => Kind::Journal,
        _ => return None,
    };
    let is_commit = match reader.u8()? {
        0 => false,
        FLAG_COMMIT => true,
        _ => return None,
    };
    let length = usize::try_from(reader.u32()?).ok()?;
    if length > MAX_PAYLOAD {
        return None;
    }
    let header = Header {
        version,
        kind,
        is_commit,
        generation: reader.u64()?,
        sequence: reader.u64()?,
        nonce: reader.u64()?,
        previous: reader.u64()?,
        durable: reader.u64()?,
    };
    let hash = reader.u64()?;
    Some(Parsed {
        header,
        length,
        hash,
    })
}

/// Whether header and payload are as they were written. `bytes` begins with the header.
pub fn is_whole(parsed: &Parsed, bytes: &[u8]) -> bool {
    let (Some(head), Some(payload)) = (
        bytes.get(..HEADER - 8),
        bytes.get(HEADER..HEADER + parsed.length),
    ) else {
        return false;
    };
    hash_of(head, payload) == parsed.hash
}

/// Bytes that a frame of this payload takes.
pub const fn size(payload: usize, block: usize) -> usize {
    (HEADER + payload).next_multiple_of(block)
}

fn hash_of(head: &[u8], payload: &[u8]) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(head);
    hasher.update(payload);
    hasher.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_back_and_no_changed_byte_of_it_counts() {
        let header = Header {
            version: 2,
            kind: Kind::Journal,
            is_commit: true,
            generation: 7,
            sequence: 9,
            nonce: 11,
            previous: 13,
            durable: 8,
        };
        let mut bytes = Vec::new();
        encode(&header, b"payload", 512, &mut bytes);
        assert_eq!(bytes.len(), 512);
        let parsed = parse(&bytes).unwrap();
        assert_eq!((parsed.header, parsed.length), (header, 7));
        assert!(is_whole(&parsed, &bytes));
        for at in 0..HEADER + 7 {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let is_same = parse(&changed).is_ok_and(|parsed| is_whole(&parsed, &changed));
            assert!(!is_same, "byte {at}");
        }
        bytes[8] = 3;
        assert!(!is_whole(&parse(&bytes).unwrap(), &bytes));
        assert_eq!(parse(&bytes[..5]).unwrap_err(), NoFrame::Nothing);
    }
}
