//! Bytes on the drive, and nothing else. `docs/format/zea.md` describes them.

pub mod label;
pub mod metadata;

use crc_fast::{CrcAlgorithm, checksum};

/// The version of labels and metadata that is written, and the only one that is read.
pub const FORMAT_VERSION: u32 = 1;

/// CRC-64/NVME: the checksum of an extent's data.
pub fn data_checksum(data: &[u8]) -> u64 {
    checksum(CrcAlgorithm::Crc64Nvme, data)
}

/// CRC-32C of `block`, with the four bytes at `at` taken as zero.
fn block_checksum(block: &[u8], at: usize) -> u32 {
    let mut digest = crc_fast::Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(block.get(..at).unwrap_or_default());
    digest.update(&[0; 4]);
    digest.update(block.get(at + 4..).unwrap_or_default());
    // A CRC of 32 bits in 64.
    digest.finalize() as u32
}

/// Puts the checksum into an encoded block.
fn seal(block: &mut [u8], at: usize) {
    let sum = block_checksum(block, at);
    if let Some(place) = block.get_mut(at..at + 4) {
        place.copy_from_slice(&sum.to_le_bytes());
    }
}
