//! On-disk format of an emulated Caveat-Scriptor drive: a header and a bitmap on the drive below.
//! `docs/format/caveat.md` has the table. Decoding never panics.

use crate::bits::Bits;
use crate::drive::Parameters;
use codec::{Put, Reader};
use zone::Geometry;

/// The format version that is written. Version 1 can be read too.
pub const VERSION: u32 = 2;
/// The first eight bytes of a header.
pub const MAGIC: [u8; 8] = *b"ZSCAVEAT";
/// A drive below of fewer zones has no copy of the header.
const ZONES_FOR_COPY: u32 = 16;
/// Data begins at a multiple of this.
const ALIGNMENT: u64 = 64 << 10;
/// Bytes of the header before its padding.
const HEADER: usize = 56;
/// Bytes of a checksum.
const SUM: usize = 4;
/// Offset of the checksum in the header.
const SUM_AT: usize = 12;
/// Offset of the fields after the checksum.
const FIELDS: usize = SUM_AT + SUM;

/// The decoded header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Parameters of the drive.
    pub drive: Parameters,
    /// The version of the format.
    pub version: u32,
}

/// Byte offset of the header's copy; `None` on a drive of too few zones. It is the start of the last conventional
/// zone, so that wiping the start of every zone erases both.
pub fn copy_at(below: &Geometry) -> Option<u64> {
    let last = below.conventional_zones.checked_sub(1)?;
    (last + 1 >= ZONES_FOR_COPY).then(|| u64::from(last) * below.zone_size)
}

/// Why bytes are not a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoHeader {
    /// The bytes do not begin like a header.
    Nothing,
    /// The header has another version.
    Version(u32),
    /// The bytes begin like a header, but their checksum or a field is wrong.
    Damaged,
}

fn sum(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

impl Header {
    /// Number of blocks that fit on `bytes` bytes next to header and bitmap; `None` if none does.
    pub fn fitting(bytes: u64, block_size: u32) -> Option<u64> {
        let block = u64::from(block_size);
        // Sizes the bitmap as if all blocks held data: at most one block of bitmap too many.
        let bits = Self::pieces_of(bytes / block, block_size);
        let data = ((1 + bits) * block).next_multiple_of(ALIGNMENT);
        let blocks = bytes.checked_sub(data)? / block;
        (blocks > 0).then_some(blocks)
    }

    const fn pieces_of(blocks: u64, block_size: u32) -> u64 {
        blocks.div_ceil(piece_bits(block_size))
    }

    /// Number of blocks that the bitmap takes.
    pub const fn pieces(&self) -> u64 {
        Self::pieces_of(self.drive.blocks, self.drive.block_size)
    }

    /// Byte offset of block 0 on the drive below.
    pub fn data_offset(&self) -> u64 {
        let block = u64::from(self.drive.block_size);
        ((1 + self.pieces()) * block).next_multiple_of(ALIGNMENT)
    }

    /// Encodes the header as the first block of the drive below.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.put_u32(self.version);
        out.put_u32(0);
        out.put_u32(self.drive.block_size);
        out.put_u64(self.drive.blocks);
        out.put_u64(self.drive.unshingled);
        out.put_u64(self.drive.isolation_distance);
        out.put_u64(self.drive.no_overlap_range);
        out.put_u32(0);
        let sum = match self.version {
            1 => sum(&out[FIELDS..]),
            _ => sum(&out),
        };
        out[SUM_AT..FIELDS].copy_from_slice(&sum.to_le_bytes());
        out.resize(self.drive.block_size as usize, 0);
        out
    }

    /// Reads what [`Self::encode`] wrote. The checksum distinguishes another version, or another beginning, from
    /// damage.
    pub fn decode(bytes: &[u8]) -> Result<Self, NoHeader> {
        let begins = bytes.starts_with(&MAGIC);
        let otherwise = match begins {
            true => NoHeader::Damaged,
            false => NoHeader::Nothing,
        };
        let header = bytes.get(..HEADER).ok_or(otherwise)?;
        let mut reader = Reader(&header[MAGIC.len()..]);
        let (Some(version), Some(expected)) = (reader.u32(), reader.u32()) else {
            return Err(otherwise);
        };
        let mut covered = header.to_vec();
        covered[..MAGIC.len()].copy_from_slice(&MAGIC);
        covered[SUM_AT..FIELDS].fill(0);
        let is_first = sum(&header[FIELDS..]) == expected;
        let is_later = sum(&covered) == expected;
        match version {
            _ if !begins && (is_first || is_later) => Err(NoHeader::Damaged),
            _ if !begins => Err(NoHeader::Nothing),
            1 if is_first => Self::fields(version, &mut reader).ok_or(NoHeader::Damaged),
            2..=VERSION if is_later => Self::fields(version, &mut reader).ok_or(NoHeader::Damaged),
            version if version > VERSION && is_later => Err(NoHeader::Version(version)),
            _ => Err(NoHeader::Damaged),
        }
    }

    fn fields(version: u32, reader: &mut Reader<'_>) -> Option<Self> {
        let block_size = reader.u32()?;
        let drive = Parameters {
            block_size,
            blocks: reader.u64()?,
            unshingled: reader.u64()?,
            isolation_distance: reader.u64()?,
            no_overlap_range: reader.u64()?,
        };
        let is_right = block_size.is_power_of_two()
            && (4096..=65_536).contains(&block_size)
            && drive.blocks.checked_mul(block_size.into()).is_some()
            && drive.validate().is_ok();
        is_right.then_some(Self { drive, version })
    }
}

/// Number of blocks whose bits a piece of the bitmap holds.
pub const fn piece_bits(block_size: u32) -> u64 {
    (block_size as u64 - SUM as u64) * 8
}

/// The piece of the bitmap that holds a block's bit.
pub const fn piece_of(block: u64, block_size: u32) -> u64 {
    block / piece_bits(block_size)
}

/// Encodes a piece of the bitmap: bits, 1 for a block that may be damaged, and their checksum.
pub fn encode_piece(bits: &Bits, piece: u64, block_size: u32) -> Vec<u8> {
    let width = block_size as usize - SUM;
    let mut out = vec![0; width];
    bits.copy_bytes(piece as usize * width, &mut out);
    let sum = sum(&out);
    out.put_u32(sum);
    out
}

/// Reads what [`encode_piece`] wrote into `bits`; `None` if the checksum is wrong.
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

    fn header(version: u32, blocks: u64) -> Header {
        Header {
            drive: Parameters {
                blocks,
                block_size: 4096,
                isolation_distance: 16,
                no_overlap_range: 6,
                unshingled: 128,
            },
            version,
        }
    }

    #[test]
    fn a_header_comes_back_and_no_changed_byte_of_it_counts() {
        let header = header(VERSION, Header::fitting(1 << 24, 4096).unwrap());
        assert_eq!((header.pieces(), header.drive.blocks), (1, 4080));
        let bytes = header.encode();
        assert_eq!(Header::decode(&bytes), Ok(header));
        for at in 0..HEADER {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(
                Header::decode(&changed),
                Err(NoHeader::Damaged),
                "byte {at}"
            );
        }
        assert_eq!(Header::decode(&bytes[..20]), Err(NoHeader::Damaged));
        assert_eq!(Header::decode(&bytes[1..]), Err(NoHeader::Nothing));
        assert_eq!(Header::decode(&[0; 4096]), Err(NoHeader::Nothing));
        assert_eq!(Header::fitting(8192, 4096), None);
    }

    #[test]
    fn a_header_of_version_1_is_read_and_its_damage_is_none_of_another_version() {
        let header = header(1, 1000);
        let bytes = header.encode();
        assert_eq!(Header::decode(&bytes), Ok(header));
        for at in 0..HEADER {
            let mut changed = bytes.clone();
            changed[at] ^= 3;
            let expected = NoHeader::Damaged;
            assert_eq!(Header::decode(&changed), Err(expected), "byte {at}");
        }
    }

    #[test]
    fn a_distance_beyond_the_drive_is_damage() {
        let mut header = header(VERSION, 1000);
        for (distance, is_right) in [(1000, true), (1001, false), (1 << 52, false)] {
            header.drive.isolation_distance = distance;
            assert_eq!(Header::decode(&header.encode()).is_ok(), is_right);
        }
    }

    #[test]
    fn a_later_version_is_told() {
        let later = header(7, 1000).encode();
        assert_eq!(Header::decode(&later), Err(NoHeader::Version(7)));
    }

    #[test]
    fn the_worked_example_of_the_document_is_what_is_written() {
        let document = include_str!("../../../../docs/format/caveat.md");
        let block = document.split("```").nth(1).unwrap();
        let byte = |digits| u8::from_str_radix(digits, 16).unwrap();
        let example: Vec<u8> = block.split_whitespace().map(byte).collect();
        assert_eq!(header(VERSION, 1000).encode()[..HEADER], example);
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
