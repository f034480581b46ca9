//! Archives of `fs backup` (docs/format/backup.md): their last file as it comes and with a right checksum, and whole
//! archives as they come and with right checksums of their headers.

#![no_main]

use backup::Result;
use backup::format::Contents;
use backup::unpack::{Sink, unpack};
use crc_fast::{CrcAlgorithm, checksum};
use libfuzzer_sys::fuzz_target;
use std::io::Read;

/// Bytes of a block of a tar archive.
const BLOCK: usize = 512;
/// Where a header has its sum.
const SUM: std::ops::Range<usize> = 148..156;

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else {
        return;
    };
    match choice % 4 {
        0 => contents(bytes),
        1 => {
            let sum = checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32;
            contents(&[bytes, format!("\n{sum:08x}\n").as_bytes()].concat());
        }
        2 => archive(bytes),
        _ => {
            let mut sealed = bytes.to_vec();
            sealed.resize(bytes.len().next_multiple_of(BLOCK), 0);
            sealed.chunks_exact_mut(BLOCK).for_each(seal);
            archive(&sealed);
        }
    }
});

fn contents(text: &[u8]) {
    if let Some(found) = Contents::decode(text) {
        let again = found.encode().expect("what was read");
        assert_eq!(Contents::decode(&again), Some(found));
    }
}

fn archive(bytes: &[u8]) {
    for foreign in [false, true] {
        if let Ok(found) = unpack(bytes, foreign, &mut Inside) {
            assert!(found.bytes() <= bytes.len() as u64);
        }
    }
}

/// Every path it is given lies below the root.
struct Inside;

impl Sink for Inside {
    fn directory(&mut self, path: &str) -> Result<()> {
        check(path);
        Ok(())
    }

    fn file(&mut self, path: &str, _: u64, content: &mut dyn Read) -> Result<u64> {
        check(path);
        Ok(std::io::copy(content, &mut std::io::sink())?)
    }
}

fn check(path: &str) {
    assert!(path.is_empty() || path.starts_with('/'));
    assert!(path.split('/').all(|part| part != ".."));
}

/// Makes any block one that passes for a header.
fn seal(block: &mut [u8]) {
    block[SUM].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[SUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}
