//! Superblocks, journal frames and log records (docs/format/bluefs.md), as they come and with right checksums.

#![no_main]

use bluefs::format::superblock::{self, Decoded, Superblock};
use bluefs::format::{journal, log_record};
use crc_fast::{CrcAlgorithm, checksum};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else {
        return;
    };
    match choice % 4 {
        0 => block(bytes),
        1 => frame(bytes),
        2 => operations(bytes),
        _ => record(bytes),
    }
});

fn block(bytes: &[u8]) {
    let _ = Superblock::decode(bytes);
    let mut sealed = [0; superblock::ENCODED];
    let length = bytes.len().min(sealed.len());
    sealed[..length].copy_from_slice(&bytes[..length]);
    sealed[..8].copy_from_slice(&superblock::MAGIC);
    sealed[12..16].fill(0);
    let sum = crc32c(&sealed);
    sealed[12..16].copy_from_slice(&sum.to_le_bytes());
    // Whose block size is not the drive's is refused before anything is written.
    if let Decoded::Valid(found) = Superblock::decode(&sealed)
        && (512..=65_536).contains(&found.block_size)
    {
        assert!(Superblock::decode(&found.encode()) == Decoded::Valid(found));
    }
}

fn frame(bytes: &[u8]) {
    let mut sealed = bytes.to_vec();
    for _ in 0..2 {
        if let Some(header) = journal::decode_header(&sealed) {
            assert!(header.frame_length() >= journal::HEADER);
            let _ = header.fits(&sealed);
        }
        let _ = journal::decode_frame(&sealed);
        seal(&mut sealed, &journal::MAGIC);
    }
}

/// Behind a right checksum: what decodes encodes to the same bytes.
fn operations(bytes: &[u8]) {
    let place = journal::Place {
        epoch: 1,
        sequence: 2,
        previous: 3,
    };
    let payload = &bytes[..bytes.len().min(journal::MAX_PAYLOAD)];
    let (frame, _) = journal::encode_frame(place, 4, payload, 512);
    let used = &frame[..journal::HEADER + payload.len()];
    if let journal::DecodedFrame::Whole(operations, _) = journal::decode_frame(used) {
        let mut again = Vec::new();
        operations
            .iter()
            .for_each(|operation| operation.encode(&mut again));
        assert!(again == payload);
    }
}

fn record(bytes: &[u8]) {
    let mut sealed = bytes.to_vec();
    for _ in 0..2 {
        if let Some(header) = log_record::decode_header(&sealed) {
            assert!(
                (log_record::HEADER..=log_record::HEADER + log_record::MAX_PAYLOAD)
                    .contains(&header.record_length())
            );
            let _ = header.fits(&sealed);
        }
        seal(&mut sealed, &log_record::MAGIC);
    }
}

/// With the right magic, and a checksum that covers everything behind it.
fn seal(bytes: &mut [u8], magic: &[u8; 4]) {
    if let Some((head, rest)) = bytes.split_at_mut_checked(8) {
        head[..4].copy_from_slice(magic);
        head[4..].copy_from_slice(&crc32c(rest).to_le_bytes());
    }
}

fn crc32c(bytes: &[u8]) -> u32 {
    checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}
