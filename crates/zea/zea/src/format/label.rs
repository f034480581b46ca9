//! The label: identity and options of an instance, in each of the zone's first two blocks.

use super::{FORMAT_VERSION, block_checksum, seal};
use codec::{Put, Reader};

/// First bytes of a label.
pub const MAGIC: [u8; 8] = *b"ZSZEALBL";
/// Length of the encoding in bytes; the rest of the block is zero.
pub const ENCODED: usize = 64;
/// Number of copies of the label, each in one of the first blocks of the zone.
pub const COPIES: u32 = 2;

const CHECKSUM_AT: usize = 12;

/// The contents of a label.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Label {
    /// Random, new each time that the zone is formatted, so that blocks from before a reset, or a consumer's
    /// data, are not taken for metadata.
    pub run_id: [u8; 16],
    /// Number of the zone.
    pub zone: u32,
    /// Most back pointers in a block of metadata.
    pub back_pointers: u32,
    /// The drive's block size.
    pub block_size: u32,
    /// Bytes that can be written to the zone.
    pub zone_capacity: u64,
}

/// The result of decoding a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decoded {
    /// A label.
    Valid(Label),
    /// A label of another version, with a valid checksum.
    OtherVersion(u32),
    /// The magic of a label with a wrong checksum: the stored one, then the computed one.
    Damaged(u32, u32),
    /// Not a label.
    Nothing,
}

impl Label {
    /// Encodes the label as one block.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.block_size as usize);
        out.extend_from_slice(&MAGIC);
        out.put_u32(FORMAT_VERSION);
        out.put_u32(0);
        out.extend_from_slice(&self.run_id);
        out.put_u32(self.zone);
        out.put_u32(self.back_pointers);
        out.put_u32(self.block_size);
        out.put_u32(0);
        out.put_u64(self.zone_capacity);
        out.put_u64(0);
        debug_assert_eq!(out.len(), ENCODED);
        out.resize(self.block_size as usize, 0);
        seal(&mut out, CHECKSUM_AT);
        out
    }

    /// Decodes a block from the drive.
    pub fn decode(block: &[u8]) -> Decoded {
        let mut fields = Reader(block);
        if fields.take(8) != Some(&MAGIC) {
            return Decoded::Nothing;
        }
        let (Some(version), Some(told)) = (fields.u32(), fields.u32()) else {
            return Decoded::Nothing;
        };
        let found = block_checksum(block, CHECKSUM_AT);
        if told != found {
            return Decoded::Damaged(told, found);
        }
        if version != FORMAT_VERSION {
            return Decoded::OtherVersion(version);
        }
        Self::fields(&mut fields).map_or(Decoded::Nothing, Decoded::Valid)
    }

    fn fields(fields: &mut Reader<'_>) -> Option<Self> {
        let run_id = fields.take(16)?.try_into().ok()?;
        let (zone, back_pointers, block_size) = (fields.u32()?, fields.u32()?, fields.u32()?);
        fields.u32()?;
        let zone_capacity = fields.u64()?;
        Some(Self {
            run_id,
            zone,
            back_pointers,
            block_size,
            zone_capacity,
        })
    }
}
