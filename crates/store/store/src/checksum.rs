//! crc32c, the checksum of every stored byte.

use crc_fast::{CrcAlgorithm, checksum};
use object::ChecksumBlock;

/// Bytes under one checksum of what is written.
pub(crate) const BLOCK: u64 = ChecksumBlock::DEFAULT.bytes() as u64;

pub(crate) fn crc32c(data: &[u8]) -> u32 {
    // The 32-bit result comes in the low half of the crate's 64-bit answer.
    checksum(CrcAlgorithm::Crc32Iscsi, data) as u32
}

/// One checksum for every [`BLOCK`] of `data`.
pub(crate) fn of_blocks(data: &[u8]) -> Vec<u32> {
    data.chunks(BLOCK as usize).map(crc32c).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn is_the_checksum_of_rfc_3720() {
        assert_eq!(super::crc32c(b"123456789"), 0xe306_9283);
    }
}
