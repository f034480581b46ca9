//! MD5 (RFC 1321) of bytes that arrive in pieces.

use crate::md5_blocks::{BLOCK, State, alone};

/// Initial state (RFC 1321, 3.3).
const BEGIN: State = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];

/// A running MD5.
pub struct Md5 {
    /// State after all whole blocks.
    pub state: State,
    /// The bytes after the last whole block.
    pending: Vec<u8>,
    length: u64,
}

impl Md5 {
    /// The digest of no bytes so far.
    pub fn new() -> Self {
        Self {
            state: BEGIN,
            pending: Vec::new(),
            length: 0,
        }
    }

    /// Whether the next bytes begin a block.
    pub const fn is_between_blocks(&self) -> bool {
        self.pending.is_empty()
    }

    /// Takes more bytes, except for the whole blocks among them, which are returned. The caller has to bring
    /// [`Self::state`] past them before it calls anything else; only this method may be called before, and only if
    /// [`Self::is_between_blocks`].
    pub fn take_blocks<'a>(&mut self, mut data: &'a [u8]) -> &'a [u8] {
        self.length = self.length.wrapping_add(data.len() as u64);
        if !self.pending.is_empty() {
            let (head, rest) = data.split_at(data.len().min(BLOCK - self.pending.len()));
            self.pending.extend_from_slice(head);
            data = rest;
            if self.pending.len() == BLOCK {
                self.state = alone(self.state, &self.pending);
                self.pending.clear();
            }
        }
        let (blocks, rest) = data.split_at(data.len() - data.len() % BLOCK);
        self.pending.extend_from_slice(rest);
        blocks
    }

    /// Adds bytes.
    pub fn update(&mut self, data: &[u8]) {
        let blocks = self.take_blocks(data);
        self.state = alone(self.state, blocks);
    }

    /// The digest.
    pub fn finish(mut self) -> [u8; 16] {
        let bits = self.length.wrapping_mul(8);
        let used = (self.length % BLOCK as u64) as usize;
        let zeros = (2 * BLOCK - 9 - used) % BLOCK;
        self.update(&[&[0x80][..], &[0; BLOCK][..zeros], &bits.to_le_bytes()].concat());
        let mut digest = [0; 16];
        for (bytes, word) in digest.chunks_exact_mut(4).zip(self.state) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::md5::Digest;

    fn reference(data: &[u8]) -> [u8; 16] {
        ::md5::Md5::digest(data).into()
    }

    #[test]
    fn every_length_around_a_block_is_padded() {
        for length in 0..4 * BLOCK {
            let data: Vec<u8> = (0..length).map(|n| n as u8).collect();
            let mut md5 = Md5::new();
            md5.update(&data);
            assert_eq!(md5.finish(), reference(&data), "{length}");
        }
    }
}
