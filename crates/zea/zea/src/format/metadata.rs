//! The block behind each extent.

use super::label::COPIES;
use super::{block_checksum, seal};
use codec::{Put, Reader};

/// The marker: first bytes of a block of metadata.
pub const MARKER: [u8; 8] = *b"ZSZEAEXT";
/// Bytes in front of the back pointers.
pub const HEADER: usize = 80;
/// Bytes of a back pointer.
pub const POINTER: usize = 4;

const CHECKSUM_AT: usize = 8;

/// The contents of a block of metadata. Places are numbers of blocks from the zone's start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Metadata {
    /// The instance's.
    pub run_id: [u8; 16],
    /// The consumer's address of the extent.
    pub address: u64,
    /// Bytes of the extent.
    pub length: u64,
    /// CRC-64/NVME of these bytes.
    pub checksum: u64,
    /// Its place in the order of all puts.
    pub order: u64,
    /// Which extent of the zone it is, from 0.
    pub number: u64,
    /// The extent's first block.
    pub start: u32,
    /// This block.
    pub block: u32,
    /// Blocks of metadata of extents before, the nearest first.
    pub back: Vec<u32>,
}

/// What a block holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decoded {
    /// Metadata of this instance, at its place.
    Valid(Metadata),
    /// It begins as metadata does, and its checksum (the second number) is not what it says (the first).
    Damaged(u32, u32),
    /// Something else: data, zeros, metadata of another place or life of the zone.
    Nothing,
}

/// Back pointers that fit into a block.
pub const fn most_back_pointers(block_size: u32) -> u32 {
    (block_size as usize - HEADER) as u32 / POINTER as u32
}

impl Metadata {
    /// One block.
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

    /// What a block from the drive holds, of the instance `run_id`, read at block number `block`.
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

    /// Whether it lies behind its data and its pointers lead backwards: what has a right checksum is so,
    /// and whoever follows it relies on that.
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
