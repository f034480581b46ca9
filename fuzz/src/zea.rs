//! Labels and metadata of extents (docs/format/zea.md), as they come and with right checksums.

#![no_main]

use crc_fast::{CrcAlgorithm, checksum};
use libfuzzer_sys::fuzz_target;
use zea::format::label::{self, Label};
use zea::format::metadata::{self, Metadata};

const BLOCK: usize = 512;

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else {
        return;
    };
    match choice % 2 {
        0 => label(bytes),
        _ => metadata(bytes),
    }
});

/// A block that begins with `magic` and goes on as `bytes` do, with a right checksum.
fn sealed(bytes: &[u8], magic: [u8; 8], checksum_at: usize) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let length = bytes.len().min(BLOCK);
    block[..length].copy_from_slice(&bytes[..length]);
    block[..8].copy_from_slice(&magic);
    block[checksum_at..checksum_at + 4].fill(0);
    let sum = checksum(CrcAlgorithm::Crc32Iscsi, &block) as u32;
    block[checksum_at..checksum_at + 4].copy_from_slice(&sum.to_le_bytes());
    block
}

fn label(bytes: &[u8]) {
    let _ = Label::decode(bytes);
    let decoded = Label::decode(&sealed(bytes, label::MAGIC, 12));
    if let label::Decoded::Valid(found) = decoded
        && (BLOCK as u32..=65_536).contains(&found.block_size)
    {
        assert!(Label::decode(&found.encode()) == decoded);
    }
}

fn metadata(bytes: &[u8]) {
    let block = sealed(bytes, metadata::MARKER, 8);
    let mut run_id = [0; 16];
    run_id.copy_from_slice(&block[16..32]);
    let own = u32::from_le_bytes([block[76], block[77], block[78], block[79]]);
    let _ = Metadata::decode(bytes, &run_id, own);
    let decoded = Metadata::decode(&block, &run_id, own);
    if let metadata::Decoded::Valid(found) = &decoded {
        assert!(Metadata::decode(&found.encode(BLOCK as u32), &run_id, own) == decoded);
    }
}
