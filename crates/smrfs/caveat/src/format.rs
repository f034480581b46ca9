//! What an emulated Caveat-Scriptor drive keeps on the drive below: a header, and its bitmap. `docs/format/caveat.md`
//! has the table. What is read never panics.

use crate::bits::Bits;
use crate::drive::Parameters;
use codec::{Put, Reader};

/// The version that is written, and the only one that is read.
pub const VERSION: u32 = 1;
/// The first eight bytes.
pub const MAGIC: [u8; 8] = *b"ZSCAVEAT";
/// Data begins at a multiple of this.
const ALIGNMENT: u64 = 64 << 10;
/// Bytes of the header that mean something.
const HEADER: usize = 56;
/// Bytes of a checksum.
const SUM: usize = 4;

/// What a header says: the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header(pub Parameters);

/// Why bytes are no header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoHeader {
    /// They do not begin as one.
    Nothing,
    /// They are one of another version.
    Version(u32),
    /// They begin as one, and are not as they were written.
    Damaged,
}

fn sum(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

impl Header {
    /// How many blocks have room on `bytes` bytes beside header and bitmap; `None` if none has.
    pub fn fitting(bytes: u64, block_size: u32) -> Option<u64> {
        let block = u64::from(block_size);
        // As if all were data: at most one block of the bitmap too many.
        let bits = Self::pieces_of(bytes / block, block_size);
        let data = ((1 + bits) * block).next_multiple_of(ALIGNMENT);
        let blocks = bytes.checked_sub(data)? / block;
        (blocks > 0).then_some(blocks)
    }

    const fn pieces_of(blocks: u64, block_size: u32) -> u64 {
        blocks.div_ceil((block_size as u64 - SUM as u64) * 8)
    }

    /// Blocks of the bitmap.
    pub const fn pieces(&self) -> u64 {
        Self::pieces_of(self.0.blocks, self.0.block_size)
    }

    /// Where block 0 lies.
    pub fn data_offset(&self) -> u64 {
        let block = u64::from(self.0.block_size);
        ((1 + self.pieces()) * block).next_multiple_of(ALIGNMENT)
    }

    /// The first block of the drive below.
    pub fn encode(&self) -> Vec<u8> {
        let mut fields = Vec::new();
        fields.put_u32(self.0.block_size);
        fields.put_u64(self.0.blocks);
        fields.put_u64(self.0.unshingled);
        fields.put_u64(self.0.isolation_distance);
        fields.put_u64(self.0.no_overlap_range);
        // Up to here without what comes first.
        fields.put_u32(0);
        let mut out = MAGIC.to_vec();
        out.put_u32(VERSION);
        out.put_u32(sum(&fields));
        out.extend_from_slice(&fields);
        out.resize(self.0.block_size as usize, 0);
        out
    }

    /// Reads what [`Self::encode`] wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, NoHeader> {
        let mut reader = Reader(bytes);
        if reader.take(8) != Some(&MAGIC) {
            return Err(NoHeader::Nothing);
        }
        match reader.u32() {
            Some(VERSION) => {}
            Some(version) => return Err(NoHeader::Version(version)),
            None => return Err(NoHeader::Damaged),
        }
        Self::fields(&mut reader, bytes).ok_or(NoHeader::Damaged)
    }

    fn fields(reader: &mut Reader<'_>, bytes: &[u8]) -> Option<Self> {
        let expected = reader.u32()?;
        if sum(bytes.get(16..HEADER)?) != expected {
            return None;
        }
        let block_size = reader.u32()?;
        let parameters = Parameters {
            block_size,
            blocks: reader.u64()?,
            unshingled: reader.u64()?,
            isolation_distance: reader.u64()?,
            no_overlap_range: reader.u64()?,
        };
        let is_right = block_size.is_power_of_two()
            && (4096..=65_536).contains(&block_size)
            && parameters.blocks.checked_mul(block_size.into()).is_some()
            && parameters.validate().is_ok();
        is_right.then_some(Self(parameters))
    }
}

/// Which piece of the bitmap has a block's bit.
pub const fn piece_of(block: u64, block_size: u32) -> u64 {
    block / ((block_size as u64 - SUM as u64) * 8)
}

/// A piece of the bitmap: bits, 1 for a block that may be damaged, and their checksum.
pub fn encode_piece(bits: &Bits, piece: u64, block_size: u32) -> Vec<u8> {
    let width = block_size as usize - SUM;
    let mut out = vec![0; width];
    bits.copy_bytes(piece as usize * width, &mut out);
    let sum = sum(&out);
    out.put_u32(sum);
    out
}

/// Reads what [`encode_piece`] wrote; `None` if it is not as it was written.
pub fn decode_piece(bytes: &[u8], bits: &mut Bits, piece: u64) -> Option<()> {
    let (data, expected) = bytes.split_at_checked(bytes.len().checked_sub(SUM)?)?;
    if Reader(expected).u32()? != sum(data) {
        return None;
    }
    bits.set_bytes(piece as usize * data.len(), data);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_and_no_changed_byte_of_it_counts() {
        let header = Header(Parameters {
            blocks: Header::fitting(1 << 24, 4096).unwrap(),
            block_size: 4096,
            isolation_distance: 16,
            no_overlap_range: 6,
            unshingled: 128,
        });
        assert_eq!((header.pieces(), header.0.blocks), (1, 4080));
        let bytes = header.encode();
        assert_eq!(Header::decode(&bytes), Ok(header));
        for at in 0..HEADER {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(Header::decode(&changed).is_err(), "byte {at}");
        }
        assert_eq!(Header::decode(&bytes[..20]), Err(NoHeader::Damaged));
        assert_eq!(Header::fitting(8192, 4096), None);
    }

    #[test]
    fn the_worked_example_of_the_document_is_what_is_written() {
        let document = include_str!("../../../../docs/format/caveat.md");
        let block = document.split("```").nth(1).unwrap();
        let byte = |digits| u8::from_str_radix(digits, 16).unwrap();
        let example: Vec<u8> = block.split_whitespace().map(byte).collect();
        let header = Header(Parameters {
            blocks: 1000,
            block_size: 4096,
            isolation_distance: 16,
            no_overlap_range: 6,
            unshingled: 128,
        });
        assert_eq!(header.encode()[..HEADER], example);
    }

    #[test]
    fn pieces_of_the_bitmap_come_back() {
        let mut bits = Bits::new(70_000, true);
        bits.set(10, 20, false);
        bits.set(32_730, 60_000, false);
        let mut read = Bits::new(70_000, true);
        for piece in 0..3 {
            let mut bytes = encode_piece(&bits, piece, 4096);
            decode_piece(&bytes, &mut read, piece).unwrap();
            bytes[5] ^= 1;
            assert_eq!(decode_piece(&bytes, &mut read, piece), None);
        }
        assert_eq!(read, bits);
        assert_eq!((piece_of(32_735, 4096), piece_of(32_736, 4096)), (0, 1));
    }
}
