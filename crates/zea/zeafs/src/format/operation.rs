//! The operations in a frame: changes of names and files, in order.

use codec::{Put, Reader};
use crc_fast::{CrcAlgorithm, checksum};
use zone::{ZoneAddress, ZoneId};

/// Bytes of an extent that share a checksum, so that a part of an extent can be verified.
pub const CHUNK: u64 = 16 << 10;

/// Consecutive bytes of a file in one ZEA extent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Offset of its first byte in the file.
    pub file_offset: u64,
    /// Address of the extent.
    pub at: ZoneAddress,
    /// Bytes of file data.
    pub length: u64,
    /// Bytes on the drive, including padding and ZEA's metadata.
    pub stored: u64,
    /// CRC-32C of each [`CHUNK`].
    pub sums: Vec<u32>,
}

impl Piece {
    /// The offset in its zone at which it ends.
    pub const fn end(&self) -> u64 {
        self.at.offset.saturating_add(self.stored)
    }
}

/// A change of names or files; its fields are the names and inodes that it changes.
#[allow(missing_docs)]
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Creates an empty file; an existing one of the name is replaced.
    Create { inode: u64, name: String },
    /// Removes a name.
    Remove { name: String },
    /// Renames a file; an existing one of the new name is removed.
    Rename { from: String, to: String },
    /// Appends a piece to a file.
    Append { inode: u64, piece: Piece },
    /// Truncates a file to `size` bytes.
    Truncate { inode: u64, size: u64 },
    /// Replaces consecutive pieces by the pieces that their data was moved to.
    Move {
        inode: u64,
        file_offset: u64,
        to: Vec<Piece>,
    },
}

/// The checksums of the [`CHUNK`]s of an extent's data.
pub fn sums(data: &[u8]) -> Vec<u32> {
    let chunks = data.chunks(CHUNK as usize);
    chunks
        .map(|chunk| checksum(CrcAlgorithm::Crc32Iscsi, chunk) as u32)
        .collect()
}

/// Appends a string after its length (u16); names are bounded.
fn put_name(out: &mut Vec<u8>, name: &str) {
    out.put_u16(name.len() as u16);
    out.extend_from_slice(name.as_bytes());
}

impl Piece {
    fn encode(&self, out: &mut Vec<u8>) {
        out.put_u64(self.file_offset);
        out.put_u32(self.at.zone.0);
        out.put_u64(self.at.offset);
        out.put_u64(self.length);
        out.put_u64(self.stored);
        for sum in &self.sums {
            out.put_u32(*sum);
        }
    }

    fn decode(fields: &mut Reader<'_>) -> Option<Self> {
        let file_offset = fields.u64()?;
        let at = ZoneAddress::new(ZoneId(fields.u32()?), fields.u64()?);
        let (length, stored) = (fields.u64()?, fields.u64()?);
        let count = usize::try_from(length.div_ceil(CHUNK)).ok()?;
        let sums = fields.take(count.checked_mul(4)?)?;
        let sums = sums.chunks_exact(4);
        let sums = sums.filter_map(|sum| Some(u32::from_le_bytes(sum.try_into().ok()?)));
        (length > 0).then(|| Self {
            file_offset,
            at,
            length,
            stored,
            sums: sums.collect(),
        })
    }
}

impl Operation {
    /// Appends the encoded operation to a frame's operations.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Create { inode, name } => {
                out.push(1);
                out.put_u64(*inode);
                put_name(out, name);
            }
            Self::Remove { name } => {
                out.push(2);
                put_name(out, name);
            }
            Self::Rename { from, to } => {
                out.push(3);
                put_name(out, from);
                put_name(out, to);
            }
            Self::Append { inode, piece } => {
                out.push(4);
                out.put_u64(*inode);
                piece.encode(out);
            }
            Self::Truncate { inode, size } => {
                out.push(5);
                out.put_u64(*inode);
                out.put_u64(*size);
            }
            Self::Move {
                inode,
                file_offset,
                to,
            } => {
                out.push(6);
                out.put_u64(*inode);
                out.put_u64(*file_offset);
                out.put_u32(to.len() as u32);
                for piece in to {
                    piece.encode(out);
                }
            }
        }
    }

    /// Decodes the next operation; `None` if it is incomplete or unknown.
    pub fn decode(fields: &mut Reader<'_>) -> Option<Self> {
        Some(match fields.u8()? {
            1 => Self::Create {
                inode: fields.u64()?,
                name: fields.string()?,
            },
            2 => Self::Remove {
                name: fields.string()?,
            },
            3 => Self::Rename {
                from: fields.string()?,
                to: fields.string()?,
            },
            4 => Self::Append {
                inode: fields.u64()?,
                piece: Piece::decode(fields)?,
            },
            5 => Self::Truncate {
                inode: fields.u64()?,
                size: fields.u64()?,
            },
            6 => {
                let (inode, file_offset) = (fields.u64()?, fields.u64()?);
                let count = fields.u32()?;
                let to = (0..count).map(|_| Piece::decode(fields));
                Self::Move {
                    inode,
                    file_offset,
                    to: to.collect::<Option<_>>()?,
                }
            }
            _ => return None,
        })
    }

    /// Decodes all operations of a frame.
    pub fn decode_all(bytes: &[u8]) -> Option<Vec<Self>> {
        let mut fields = Reader(bytes);
        let mut all = Vec::new();
        while fields.end().is_none() {
            all.push(Self::decode(&mut fields)?);
        }
        Some(all)
    }
}
