//! Header and zone table of a drive file (docs/format/file-drive.md), as they come and with right checksums.
//! What decodes has to encode to the same bytes again.

#![no_main]

use crc_fast::{CrcAlgorithm, checksum};
use device::file::format::{self, entry_at, header_at};
use libfuzzer_sys::fuzz_target;
use zone::{ZoneId, ZoneKind};

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else {
        return;
    };
    match choice % 4 {
        0 => header(bytes, false),
        1 => header(bytes, true),
        2 => entry(bytes, false),
        _ => entry(bytes, true),
    }
});

fn header(bytes: &[u8], seal: bool) {
    let mut block = front::<{ format::HEADER_BYTES }>(bytes);
    if seal {
        block[..format::MAGIC.len()].copy_from_slice(&format::MAGIC);
        block[header_at::CHECKSUM..][..4].fill(0);
        let sum = checksum(CrcAlgorithm::Crc32Iscsi, &block) as u32;
        block[header_at::CHECKSUM..][..4].copy_from_slice(&sum.to_le_bytes());
    }
    if let Ok(header) = format::decode_header(&block) {
        assert!(format::encode_header(&header) == block);
        assert!(header.geometry.validate().is_ok());
        assert!(format::file_bytes(&header.geometry).is_some());
    }
}

fn entry(bytes: &[u8], seal: bool) {
    let mut entry = front::<{ format::ENTRY_BYTES }>(bytes);
    if seal {
        let sum = checksum(CrcAlgorithm::Crc32Iscsi, &entry[..entry_at::CHECKSUM]) as u32;
        entry[entry_at::CHECKSUM..].copy_from_slice(&sum.to_le_bytes());
    }
    let zone = ZoneId(u32::from_le_bytes(front(&entry)));
    for kind in [
        ZoneKind::Conventional,
        ZoneKind::SequentialWriteRequired,
        ZoneKind::SequentialWritePreferred,
    ] {
        if let Ok(content) = format::decode_entry(zone, kind, &entry) {
            assert!(format::encode_entry(zone, kind, content) == entry);
        }
    }
}

/// The first `N` bytes, zeros where there are fewer.
fn front<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut block = [0; N];
    let length = bytes.len().min(N);
    block[..length].copy_from_slice(&bytes[..length]);
    block
}
