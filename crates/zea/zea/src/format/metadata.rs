//! The metadata block that follows each extent.

use super::label::COPIES;
use super::{block_checksum, seal};
use codec::{Put, Reader};

/// The marker: first bytes of a block of metadata.
pub const MARKER: [u8; 8] = *b"ZSZEAEXT";
/// Bytes before the back pointers.
pub const HEADER: usize = 80;
/// Bytes of a back pointer.
pub const POINTER: usize = 4;

/// Where the run id is, after marker, checksum and the number of pointers.
const RUN_ID_AT: usize = 16;
const CHECKSUM_AT: usize = 8;

/// The contents of a block of metadata. Addresses are block numbers from the zone's start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Metadata {
    /// The run id of the instance ([`super::label::Label::run_id`]).
    pub run_id: [u8; 16],
    /// The consumer's address of the extent.
    pub address: u64,
    /// Bytes of the extent.
    pub length: u64,
    /// CRC-64/NVME of these bytes.
    pub checksum: u64,
    /// Position in the order of all puts of the instances that share a [`crate::Sequence`].
    pub order: u64,
    /// Number of the extent in its zone, from 0.
    pub number: u64,
    /// First block of the extent.
    pub start: u32,
    /// Block of this metadata.
    pub block: u32,
    /// Metadata blocks of the extents before, the nearest first.
    pub back: Vec<u32>,
}

/// The result of decoding a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decoded {
    /// Metadata of this instance, at its own block number.
    Valid(Metadata),
    /// The marker of metadata with a wrong checksum: the stored one, then the computed one.
    Damaged(u32, u32),
    /// Not metadata of this instance and block: data, zeros, or metadata of another place or from before a
    /// reset.
    Nothing,
}

/// Most back pointers that fit into a block.
pub const fn most_back_pointers(block_size: u32) -> u32 {
    (block_size as usize - HEADER) as u32 / POINTER as u32
}

impl Metadata {
    /// Encodes the metadata as one block.
    pub fn encode(&self, block_size: u32) -> Vec<u8> {
        let mut out = Vec::with_capacity(block_size as usize);
        out.extend_from_slice(&MARKER);
        out.put_u32(0);
        out.put_u32(self.back.len() as u32);
        out.extend_from_slice(&self.run_id);
        out.put_u64(self.address);
        out.put_u64(self.length);
        out.put_u64(self.checksum);
        out.put_u64(self.order);
        out.put_u64(self.number);
        out.put_u32(self.start);
        out.put_u32(self.block);
        debug_assert_eq!(out.len(), HEADER);
        for pointer in &self.back {
            out.put_u32(*pointer);
        }
        out.resize(block_size as usize, 0);
        seal(&mut out, CHECKSUM_AT);
        out
    }

    /// Decodes a block that was read at block number `block` of the instance `run_id`.
    pub fn decode(bytes: &[u8], run_id: &[u8; 16], block: u32) -> Decoded {
        if bytes.get(..8) != Some(&MARKER) {
            return Decoded::Nothing;
        }
        let mut fields = Reader(bytes.get(8..).unwrap_or_default());
        let Some(told) = fields.u32() else {
            return Decoded::Nothing;
        };
        let found = block_checksum(bytes, CHECKSUM_AT);
        if told != found {
            return Decoded::Damaged(told, found);
        }
        let metadata = Self::fields(&mut fields)
            .filter(|metadata| metadata.run_id == *run_id && metadata.block == block)
            .filter(|metadata| metadata.is_possible(bytes.len() as u64));
        metadata.map_or(Decoded::Nothing, Decoded::Valid)
    }

    /// Whether the block is metadata of any instance, and was read at its own block number.
    pub fn is_at(bytes: &[u8], block: u32) -> bool {
        let run_id = bytes.get(RUN_ID_AT..).and_then(<[u8]>::first_chunk);
        run_id.is_some_and(|run_id| matches!(Self::decode(bytes, run_id, block), Decoded::Valid(_)))
    }

    fn fields(fields: &mut Reader<'_>) -> Option<Self> {
        let count = fields.u32()?;
        let run_id = fields.take(16)?.try_into().ok()?;
        let (address, length, checksum) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let (order, number) = (fields.u64()?, fields.u64()?);
        let (start, block) = (fields.u32()?, fields.u32()?);
        let pointers = fields.take(count as usize * POINTER)?;
        let back = pointers.chunks_exact(POINTER);
        let back = back.filter_map(|pointer| Some(u32::from_le_bytes(pointer.try_into().ok()?)));
        Some(Self {
            run_id,
            address,
            length,
            checksum,
            order,
            number,
            start,
            block,
            back: back.collect(),
        })
    }

    /// Whether it is after its data and its pointers lead backwards. Valid metadata always does so, and readers
    /// that follow pointers rely on it to end.
    fn is_possible(&self, block_size: u64) -> bool {
        let blocks = u64::from(self.block.saturating_sub(self.start));
        let behind_each_other = std::iter::once(self.start)
            .chain(self.back.iter().copied())
            .zip(&self.back)
            .all(|(above, below)| *below < above);
        self.length > 0
            && self.length.div_ceil(block_size) == blocks
            && self.start >= COPIES
            && behind_each_other
            && self.back.iter().all(|block| *block > COPIES)
            && self.back.is_empty() == (self.number == 0)
            && self.number < u64::from(self.block)
    }
}
