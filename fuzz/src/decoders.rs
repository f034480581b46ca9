//! Every decoder of on-disk bytes, and what NBD clients send, by the first byte of the input. None may
//! panic, and what decodes has to encode to the same bytes again where the format has one encoding only.

#![no_main]

use bluefs::format::{journal, log_record, superblock};
use bluefs::unsynced;
use device::file::format;
use libfuzzer_sys::fuzz_target;
use export::protocol;

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else { return };
    match choice % 8 {
        0 => file_drive(bytes),
        1 => _ = superblock::Superblock::decode(bytes),
        2 => frame(bytes),
        3 => record(bytes),
        4 => nbd_client(bytes),
        5 => notes(bytes),
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

/// What of logs is beside a drive, with a right header too.
fn notes(bytes: &[u8]) {
    let uuid = [7; 16];
    unsynced::decode(bytes, &uuid, 1);
    let mut left = unsynced::header(&uuid, (0, 1)).to_vec();
    left.resize(unsynced::SLOTS, 0);
    left.extend_from_slice(bytes);
    for noted in unsynced::decode(&left, &uuid, 1) {
        assert!(!noted.bytes.is_empty() && noted.bytes.len() < bytes.len());
    }
}

/// A client's options and then its requests, as far as they are any.
fn nbd_client(mut bytes: &[u8]) {
    let export = protocol::Export {
        name: "d".into(),
        description: "a drive".into(),
        bytes: 1 << 30,
        block_bytes: 4096,
        trims: true,
        rotational: true,
    };
    let Some((flags, rest)) = bytes.split_first_chunk() else { return };
    let Ok(no_zeroes) = protocol::client_flags(*flags) else { return };
    bytes = rest;
    while let Some((head, rest)) = bytes.split_first_chunk()
        && let Ok((option, length)) = protocol::option_head(head)
        && let Some((data, rest)) = rest.split_at_checked(length)
    {
        bytes = rest;
        match export.answer(option, data, no_zeroes).1 {
            protocol::Next::Haggle => {}
            protocol::Next::Transmit => break,
            protocol::Next::Close => return,
        }
    }
    while let Some((head, rest)) = bytes.split_first_chunk()
        && let Ok(request) = protocol::Request::decode(head)
    {
        if export.check(&request).is_ok() && request.command != protocol::Command::Flush {
            let end = request.offset.checked_add(request.length.into());
            assert!(matches!(request.command, protocol::Command::Disconnect) || end <= Some(export.bytes));
        }
        let Some(rest) = rest.get(request.payload_bytes()..) else { return };
        bytes = rest;
    }
}
