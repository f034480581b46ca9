//! The buffer cache: blocks that were written and are not on the drive yet. Its user bounds its size.
//!
//! In the rest of that bound it keeps tails: the last block of each file that ends within a block, for the next
//! append to the file. The kernel sends only the new bytes, and without the tail each append would cost a read.

use runtime::HashMap;
use std::collections::{BTreeMap, VecDeque};

/// The space that a block of the buffer will take on the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// Space of the block that it overwrites, which is free afterwards.
    Old,
    /// New space: the block is a hole.
    New,
    /// Space that was preallocated for it.
    Preallocated,
}

#[derive(Debug)]
struct Block {
    bytes: Box<[u8]>,
    takes: Takes,
}

/// The buffer cache; see the head of this file.
#[derive(Default, Debug)]
pub struct Dirty {
    files: BTreeMap<u64, BTreeMap<u64, Block>>,
    blocks: u64,
    /// Blocks that take new space.
    new: u64,
    /// Blocks that take preallocated space.
    preallocated: u64,
    /// Number and contents of the tail of each file.
    tails: HashMap<u64, (u64, Box<[u8]>)>,
    /// Files in the order in which their tails came; a file may be there several times, or without a tail.
    order: VecDeque<u64>,
}

impl Dirty {
    /// The contents of a block that is on the drive, if the block is kept as a tail.
    pub fn tail(&self, ino: u64, block: u64) -> Option<&[u8]> {
        let (of, bytes) = self.tails.get(&ino)?;
        (*of == block).then_some(bytes)
    }

    /// Drops blocks of a file that are on the drive now; keeps block `tail` as the file's tail.
    pub fn written(&mut self, ino: u64, from: u64, to: u64, tail: Option<u64>) {
        let kept = tail.filter(|block| (from..to).contains(block));
        let bytes = kept.and_then(|block| Some((block, self.get(ino, block)?.into())));
        self.cut(ino, from, to);
        if let Some(kept) = bytes {
            self.tails.insert(ino, kept);
            self.order.push_back(ino);
        }
    }

    /// Drops the oldest tails until tails and blocks are no more than `most` together.
    pub fn keep(&mut self, most: u64) {
        let room = most.saturating_sub(self.blocks) as usize;
        while self.tails.len() > room || self.order.len() > 2 * room {
            let Some(oldest) = self.order.pop_front() else {
                break;
            };
            self.tails.remove(&oldest);
        }
    }

    fn forget_tail(&mut self, ino: u64, from: u64, to: u64) {
        let is_there = |(block, _): &(u64, Box<[u8]>)| (from..to).contains(block);
        if self.tails.get(&ino).is_some_and(is_there) {
            self.tails.remove(&ino);
        }
    }

    /// Number of blocks of all files.
    pub const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Number of blocks that take new space.
    pub const fn new_blocks(&self) -> u64 {
        self.new
    }

    /// Number of blocks that take no preallocated space.
    pub const fn not_preallocated(&self) -> u64 {
        self.blocks - self.preallocated
    }

    /// Whether a file has any blocks in the buffer.
    pub fn has(&self, ino: u64) -> bool {
        self.files.contains_key(&ino)
    }

    /// The contents of a block of a file.
    pub fn get(&self, ino: u64, block: u64) -> Option<&[u8]> {
        self.files.get(&ino)?.get(&block).map(|block| &*block.bytes)
    }

    /// The contents of a block of a file, to be changed.
    pub fn get_mut(&mut self, ino: u64, block: u64) -> Option<&mut [u8]> {
        let block = self.files.get_mut(&ino)?.get_mut(&block)?;
        Some(&mut block.bytes)
    }

    /// Adds a block that is not in the buffer.
    pub fn put(&mut self, ino: u64, block: u64, bytes: Box<[u8]>, takes: Takes) {
        self.forget_tail(ino, block, block + 1);
        let entry = Block { bytes, takes };
        let old = self.files.entry(ino).or_default().insert(block, entry);
        debug_assert!(old.is_none());
        self.blocks += 1;
        self.new += u64::from(takes == Takes::New);
        self.preallocated += u64::from(takes == Takes::Preallocated);
    }

    /// Drops blocks `from..to` of a file, the tail too: they are on the drive, or no longer part of the file.
    pub fn cut(&mut self, ino: u64, from: u64, to: u64) {
        self.forget_tail(ino, from, to);
        let Some(file) = self.files.get_mut(&ino) else {
            return;
        };
        let gone: Vec<u64> = file.range(from..to).map(|(block, _)| *block).collect();
        for block in gone {
            if let Some(block) = file.remove(&block) {
                self.blocks -= 1;
                self.new -= u64::from(block.takes == Takes::New);
                self.preallocated -= u64::from(block.takes == Takes::Preallocated);
            }
        }
        if file.is_empty() {
            self.files.remove(&ino);
        }
    }

    /// Files that have blocks in the buffer, by inode.
    pub fn files(&self) -> impl Iterator<Item = u64> {
        self.files.keys().copied()
    }

    /// The file with the most blocks in the buffer.
    pub fn largest(&self) -> Option<u64> {
        let largest = self.files.iter().max_by_key(|(_, blocks)| blocks.len());
        largest.map(|(ino, _)| *ino)
    }

    /// The next block of a file in the buffer at or after `block`.
    pub fn next(&self, ino: u64, block: u64) -> Option<u64> {
        let mut rest = self.files.get(&ino)?.range(block..);
        rest.next().map(|(block, _)| *block)
    }

    /// The blocks of a file in the buffer, in order: number, contents and space.
    pub fn of(&self, ino: u64) -> impl Iterator<Item = (u64, &[u8], Takes)> {
        let file = self.files.get(&ino).into_iter().flatten();
        file.map(|(number, block)| (*number, &*block.bytes, block.takes))
    }

    /// Number of blocks of a file that take new space.
    pub fn new_of(&self, ino: u64) -> u64 {
        let file = self.files.get(&ino).into_iter().flatten();
        file.filter(|(_, block)| block.takes == Takes::New).count() as u64
    }
}
