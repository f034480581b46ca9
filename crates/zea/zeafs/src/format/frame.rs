//! The frames of the metadata log: header, checksum, encoding and decoding.

use super::{FORMAT_VERSION, OLDEST_VERSION};
use codec::{Put, Reader};
use crc_fast::{CrcAlgorithm, Digest};

/// First bytes of a frame.
pub const MAGIC: [u8; 8] = *b"ZSZEAFSM";
/// Bytes before a frame's operations.
pub const HEADER: usize = 80;

const CHECKSUM_AT: usize = 12;

/// The header of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The file system's identity.
    pub uuid: [u8; 16],
    /// Epoch of the checkpoint that the frame belongs to; grows with each checkpoint.
    pub epoch: u64,
    /// 0 for the checkpoint, and one more for each frame after it.
    pub number: u64,
    /// Bytes of its operations.
    pub length: u64,
    /// The last frame known to be durable with all extents that it names; this frame itself if it names no
    /// extents.
    pub durable: u64,
    /// The drive's block size at the time of writing, in bytes.
    pub block_size: u32,
    /// Zones of the drive.
    pub zone_count: u32,
    /// Bytes of a sequential zone.
    pub zone_capacity: u64,
}

/// The result of decoding a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decoded {
    /// A frame header, with the checksum of the whole frame.
    Header(Frame, u32),
    /// A frame of another version if its checksum is valid, else a damaged one of any version. All versions
    /// have length and checksum at the same offsets.
    OtherVersion(u32, Frame, u32),
    /// Not a frame.
    Nothing,
}

impl Frame {
    /// Encodes the whole frame, padded to blocks.
    pub fn encode(&self, operations: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER + operations.len());
        out.extend_from_slice(&MAGIC);
        out.put_u32(FORMAT_VERSION);
        out.put_u32(0);
        out.extend_from_slice(&self.uuid);
        out.put_u64(self.epoch);
        out.put_u64(self.number);
        out.put_u64(operations.len() as u64);
        out.put_u32(self.block_size);
        out.put_u32(self.zone_count);
        out.put_u64(self.zone_capacity);
        out.put_u64(self.durable);
        debug_assert_eq!(out.len(), HEADER);
        out.extend_from_slice(operations);
        let sum = checksum(&out);
        out[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&sum.to_le_bytes());
        out.resize(out.len().next_multiple_of(self.block_size as usize), 0);
        out
    }

    /// Decodes the first bytes of a block.
    pub fn decode(block: &[u8]) -> Decoded {
        let header = |fields: &mut Reader<'_>| {
            let (version, sum) = (fields.u32()?, fields.u32()?);
            let mut frame = Self {
                uuid: fields.take(16)?.try_into().ok()?,
                epoch: fields.u64()?,
                number: fields.u64()?,
                length: fields.u64()?,
                block_size: fields.u32()?,
                zone_count: fields.u32()?,
                zone_capacity: fields.u64()?,
                durable: fields.u64()?,
            };
            if version == OLDEST_VERSION {
                frame.durable = frame.number;
            }
            Some(match version {
                OLDEST_VERSION..=FORMAT_VERSION => Decoded::Header(frame, sum),
                version => Decoded::OtherVersion(version, frame, sum),
            })
        };
        let mut fields = Reader(block);
        match fields.take(8) {
            Some(magic) if magic == MAGIC => header(&mut fields).unwrap_or(Decoded::Nothing),
            _ => Decoded::Nothing,
        }
    }

    /// The last frame that was durable, with all extents that it names, before this one was written.
    pub fn behind_durable(&self) -> Option<u64> {
        Some(self.durable.min(self.number.checked_sub(1)?))
    }

    /// Bytes of header and operations, without padding.
    pub const fn bytes(&self) -> u64 {
        self.length.saturating_add(HEADER as u64)
    }
}

/// CRC-32C of a frame, with the checksum's own four bytes counted as zero.
pub fn checksum(frame: &[u8]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(frame.get(..CHECKSUM_AT).unwrap_or_default());
    digest.update(&[0; 4]);
    digest.update(frame.get(CHECKSUM_AT + 4..).unwrap_or_default());
    digest.finalize() as u32
}
