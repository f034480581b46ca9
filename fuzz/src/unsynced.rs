//! What of logs is beside a drive file (docs/format/unsynced.md): as it comes, behind a right header, and with
//! right checksums of notes.

#![no_main]

use bluefs::unsynced;
use crc_fast::{CrcAlgorithm, checksum};
use libfuzzer_sys::fuzz_target;

const UUID: [u8; 16] = [7; 16];
/// Bytes of a note in front of those of the log.
const NOTE: usize = 32;

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else {
        return;
    };
    match choice % 3 {
        0 => _ = unsynced::decode(bytes, &UUID, 1),
        1 => slot(bytes),
        _ => {
            let mut sealed = bytes.to_vec();
            seal(&mut sealed);
            slot(&sealed);
        }
    }
});

fn slot(bytes: &[u8]) {
    let mut left = unsynced::header(&UUID, (0, 1)).to_vec();
    left.resize(unsynced::SLOTS, 0);
    left.extend_from_slice(bytes);
    for epoch in [0, 1] {
        for noted in unsynced::decode(&left, &UUID, epoch) {
            assert!(!noted.bytes.is_empty() && noted.bytes.len() < bytes.len());
        }
    }
    assert!(unsynced::decode(&left, &UUID, 2).is_empty());
}

/// Gives each note that its length leads to a right checksum.
fn seal(mut bytes: &mut [u8]) {
    while bytes.len() >= NOTE {
        let length = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) as usize;
        let Some((note, rest)) = bytes.split_at_mut_checked(NOTE.saturating_add(length)) else {
            return;
        };
        let sum = checksum(CrcAlgorithm::Crc32Iscsi, &note[4..]) as u32;
        note[..4].copy_from_slice(&sum.to_le_bytes());
        bytes = rest;
    }
}
