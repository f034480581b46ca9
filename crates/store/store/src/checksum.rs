//! Checksums of stored bytes and of records.

use crc_fast::{CrcAlgorithm, checksum};
use object::{ChecksumBlock, ChecksumKind};
use xxhash_rust::xxh3::xxh3_64;

pub(crate) fn crc32c(data: &[u8]) -> u32 {
    // The crate returns the 32-bit result in the low half of 64 bits.
    checksum(CrcAlgorithm::Crc32Iscsi, data) as u32
}

/// A checksum for every block of `data`; empty for [`ChecksumKind::None`].
pub(crate) fn of_blocks(kind: ChecksumKind, block: ChecksumBlock, data: &[u8]) -> Vec<u32> {
    let of: fn(&[u8]) -> u32 = match kind {
        ChecksumKind::None => return Vec::new(),
        ChecksumKind::Crc32c => crc32c,
        ChecksumKind::Xxh3 => |bytes| xxh3_64(bytes) as u32,
    };
    data.chunks(block.bytes() as usize).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_those_of_their_documents() {
        let block = ChecksumBlock::DEFAULT;
        let of = |kind| of_blocks(kind, block, b"123456789");
        // RFC 3720.
        assert_eq!(of(ChecksumKind::Crc32c), [0xe306_9283]);
        assert!(of(ChecksumKind::None).is_empty());
        // XXH3_64bits of nothing, by its specification: 2d06800538d394c2.
        let nothing = |data: &[u8]| xxh3_64(data) as u32;
        assert_eq!(nothing(b""), 0x38d3_94c2);
        assert_eq!(of(ChecksumKind::Xxh3).len(), 1);
        let two = of_blocks(
            ChecksumKind::Crc32c,
            ChecksumBlock::all().next().unwrap(),
            &[0; 4097],
        );
        assert_eq!(two.len(), 2);
    }
}
