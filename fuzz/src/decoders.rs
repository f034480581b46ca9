//! Every decoder of on-disk bytes, by the first byte of the input. None may panic, and what
//! decodes has to encode to the same bytes again where the format has one encoding only.

#![no_main]

use bluefs::format::{journal, log_record, superblock};
use device::file::format;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else { return };
    match choice % 6 {
        0 => file_drive(bytes),
        1 => _ = superblock::Superblock::decode(bytes),
        2 => frame(bytes),
        3 => record(bytes),
        _ => store::fuzz(bytes),
    }
});

fn file_drive(bytes: &[u8]) {
    let mut block = [0; format::HEADER_BYTES];
    let length = bytes.len().min(block.len());
    block[..length].copy_from_slice(&bytes[..length]);
    if let Ok(header) = format::decode_header(&block) {
        assert!(format::encode_header(&header) == block);
    }
}

fn frame(bytes: &[u8]) {
    let place = journal::Place { epoch: 1, sequence: 2, previous: 3 };
    if let Some(header) = journal::decode_header(bytes) {
        let _ = header.fits(bytes);
    }
    let _ = journal::decode_frame(bytes);
    // Behind a right checksum too.
    let payload = &bytes[..bytes.len().min(journal::MAX_PAYLOAD)];
    let (frame, _) = journal::encode_frame(place, 4, payload, 512);
    let used = &frame[..journal::HEADER + payload.len()];
    if let journal::DecodedFrame::Whole(operations, _) = journal::decode_frame(used) {
        let mut again = Vec::new();
        operations.iter().for_each(|operation| operation.encode(&mut again));
        assert!(again == payload);
    }
}

fn record(bytes: &[u8]) {
    if let Some(header) = log_record::decode_header(bytes) {
        let _ = header.fits(bytes);
    }
}
