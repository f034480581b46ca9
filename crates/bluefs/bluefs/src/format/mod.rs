//! BlueFS's formats on the drive: encoders and decoders, nothing else. They are described in `docs/format/bluefs.md`.
//! All numbers are little-endian; decoders accept any bytes.

pub mod journal;
pub mod log_record;
pub mod operation;
pub mod superblock;

use crc_fast::{CrcAlgorithm, checksum};

/// The newest format version: metadata in two copies.
pub const FORMAT_VERSION: u32 = 7;
/// The oldest format version that is read and written: metadata in one copy.
pub const ONE_COPY_VERSION: u32 = 6;

pub(crate) fn crc32c(data: &[u8]) -> u32 {
    // The crate returns the 32-bit checksum in the low half of 64 bits.
    checksum(CrcAlgorithm::Crc32Iscsi, data) as u32
}
