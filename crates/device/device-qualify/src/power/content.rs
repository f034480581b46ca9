//! The bytes of the test's blocks: each block names its round, its write and its own address.

use super::round::Round;
use fastrand::Rng;
use zone::ZoneAddress;

const MAGIC: &[u8; 8] = b"ZSPOWER1";

/// Fills `blocks` with the bytes that write `number` puts at `at`. After the head of a block they look random,
/// so that no drive compresses or recognizes them.
pub fn fill(round: &Round, number: u64, at: ZoneAddress, blocks: &mut [u8]) {
    let block_bytes = round.block_bytes as usize;
    for (index, block) in blocks.chunks_mut(block_bytes).enumerate() {
        let offset = at.offset + (index * block_bytes) as u64;
        let head = [round.seed, number, u64::from(at.zone.0), offset];
        let mixed = head.iter().fold(0, |hash: u64, part| {
            (hash.rotate_left(23) ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        Rng::with_seed(mixed).fill(block);
        let parts = std::iter::once(*MAGIC).chain(head.map(u64::to_le_bytes));
        for (target, part) in block.chunks_exact_mut(8).zip(parts) {
            target.copy_from_slice(&part);
        }
    }
}
