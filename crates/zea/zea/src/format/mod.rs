//! The on-disk format of labels and metadata, encoding and decoding only. See `docs/format/zea.md`.

pub mod label;
pub mod metadata;

use crc_fast::{CrcAlgorithm, checksum};

/// The format version of labels and metadata; no other one is read.
pub const FORMAT_VERSION: u32 = 1;

/// CRC-64/NVME: the checksum of an extent's data.
pub fn data_checksum(data: &[u8]) -> u64 {
    checksum(CrcAlgorithm::Crc64Nvme, data)
}

/// CRC-32C of `block`, with the four bytes at `at` counted as zero.
fn block_checksum(block: &[u8], at: usize) -> u32 {
    let mut digest = crc_fast::Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(block.get(..at).unwrap_or_default());
    digest.update(&[0; 4]);
    digest.update(block.get(at + 4..).unwrap_or_default());
    // The 64-bit result holds a 32-bit CRC.
    digest.finalize() as u32
}

/// Stores the checksum in an encoded block.
fn seal(block: &mut [u8], at: usize) {
    let sum = block_checksum(block, at);
    if let Some(place) = block.get_mut(at..at + 4) {
        place.copy_from_slice(&sum.to_le_bytes());
    }
}
