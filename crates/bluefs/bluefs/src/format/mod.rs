//! BlueFS on the drive, byte for byte: encode and decode, nothing else. Described in
//! `docs/format/bluefs.md`. All numbers are little-endian; decoders take any bytes.

pub mod journal;
pub mod log_record;
pub mod operation;
pub mod superblock;

use crc_fast::{CrcAlgorithm, checksum};

/// The newest version of what is described here: metadata in two copies.
pub const FORMAT_VERSION: u32 = 7;
/// The oldest that is read and written: the same in one copy.
pub const ONE_COPY_VERSION: u32 = 6;

pub(crate) fn crc32c(data: &[u8]) -> u32 {
    // The 32-bit result comes in the low half of the crate's 64-bit answer.
    checksum(CrcAlgorithm::Crc32Iscsi, data) as u32
}
