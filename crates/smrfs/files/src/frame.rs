//! The frame, the unit of the metadata log: a header of 64 bytes, a payload, and zeros up to a whole block.
//! `docs/format/smrfs.md` has the table. Parsing never panics.

use codec::{Put, Reader};
use xxhash_rust::xxh3::Xxh3;

/// The newest format version. A slot is written with the oldest version that has all its records; all older versions
/// can be read.
pub const VERSION: u16 = 2;
/// The first eight bytes of each frame.
pub const MAGIC: [u8; 8] = *b"ZSTRAPPD";
/// Bytes of a frame before its payload.
pub const HEADER: usize = 64;
/// Most bytes of a payload.
pub const MAX_PAYLOAD: usize = 1 << 20;
const FLAG_COMMIT: u8 = 1;

/// The contents of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The first frame of a slot: the parameters of the file system.
    Head,
    /// Records of a part of all metadata.
    Checkpoint,
    /// Records of changes since the checkpoint.
    Journal,
}

/// The fields of a header except lengths and hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The version of the format, the same in all frames of a slot.
    pub version: u16,
    /// The contents of the frame.
    pub kind: Kind,
    /// Whether this frame completes a group: the records of a group count together or not at all.
    pub is_commit: bool,
    /// Generation of the slot, which grows by one with each checkpoint.
    pub generation: u64,
    /// Position of the frame in its slot, counted from 0.
    pub sequence: u64,
    /// Nonce of the mount that wrote the frame: frames that a crash left after the end cannot continue those of
    /// another mount.
    pub nonce: u64,
    /// Hash of the frame before it in its slot; 0 in the first.
    pub previous: u64,
    /// Frames below this sequence were flushed before this one was written.
    pub durable: u64,
}

/// A parsed header, with the fields to check the frame by.
#[derive(Clone, Copy, Debug)]
pub struct Parsed {
    /// Its fields.
    pub header: Header,
    /// Bytes of the payload.
    pub length: usize,
    /// Hash of header and payload.
    pub hash: u64,
}

/// Why bytes are not a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoFrame {
    /// The bytes do not begin like a frame.
    Nothing,
    /// The bytes begin like a frame of another version.
    Version(u16),
    /// The bytes begin like a frame, but a field is wrong.
    Damaged,
}

/// Appends a frame to `out`, padded to whole blocks, and returns its hash.
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

/// Parses a header of any version from the first [`HEADER`] bytes. The caller has to compare the hash first, and the
/// version only then: if the version field is damaged, the frame is of no other version.
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

/// Whether header and payload match the hash. `bytes` begins with the header.
pub fn is_whole(parsed: &Parsed, bytes: &[u8]) -> bool {
    let (Some(head), Some(payload)) = (
        bytes.get(..HEADER - 8),
        bytes.get(HEADER..HEADER + parsed.length),
    ) else {
        return false;
    };
    hash_of(head, payload) == parsed.hash
}

/// Bytes of a frame with a payload of this length, padding included.
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
