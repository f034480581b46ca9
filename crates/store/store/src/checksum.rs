//! crc32c, the checksum of every stored byte.

use crc_fast::{CrcAlgorithm, checksum};

/// Bytes under one checksum.
pub(crate) const CHUNK: u64 = 64 << 10;

pub(crate) fn crc32c(data: &[u8]) -> u32 {
    // The 32-bit result comes in the low half of the crate's 64-bit answer.
    checksum(CrcAlgorithm::Crc32Iscsi, data) as u32
}

/// One checksum for every chunk of `data`.
pub(crate) fn of_chunks(data: &[u8]) -> Vec<u32> {
    data.chunks(CHUNK as usize).map(crc32c).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn is_the_checksum_of_rfc_3720() {
        assert_eq!(super::crc32c(b"123456789"), 0xe306_9283);
    }
}
