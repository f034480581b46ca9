//! BlueFS on the drive, byte for byte: encode and decode, nothing else. Described in
//! `docs/format/bluefs.md`. All numbers are little-endian; decoders take any bytes.

pub(crate) mod bytes;
pub mod journal;
pub mod log_record;
pub mod superblock;

use crc_fast::{CrcAlgorithm, checksum};

/// The version of everything described here.
pub const FORMAT_VERSION: u32 = 4;
/// The oldest that is read; the next superblock makes it the present one. Version 3 is the same, but
/// its programs do not know that a segment of a log may be named again behind a cut.
pub(crate) const OLDEST_READ: u32 = 3;

pub(crate) fn crc32c(data: &[u8]) -> u32 {
    // The 32-bit result comes in the low half of the crate's 64-bit answer.
    checksum(CrcAlgorithm::Crc32Iscsi, data) as u32
}
