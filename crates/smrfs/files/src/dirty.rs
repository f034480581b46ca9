//! Blocks that were written and are not on the drive yet: the buffer cache. Its size is bounded by whoever writes.
//!
//! Where they leave room, it keeps the last blocks of files that end within one, for whoever appends to the file next: the
//! kernel sends the new bytes alone, and each would cost a read.

use runtime::HashMap;
use std::collections::{BTreeMap, VecDeque};

/// What a block of the buffer will lie in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// The space of what it overwrites, once that is free.
    Old,
    /// Space that its file does not have yet.
    New,
    /// Space that was set aside for it.
    Preallocated,
}

#[derive(Debug)]
struct Block {
    bytes: Box<[u8]>,
    takes: Takes,
}

/// See the head of this file.
#[derive(Default, Debug)]
pub struct Dirty {
    files: BTreeMap<u64, BTreeMap<u64, Block>>,
    blocks: u64,
    /// Of them, those that take new space.
    new: u64,
    /// And those that space was set aside for.
    preallocated: u64,
    /// By file; what is in `order` and not here was dropped since.
    tails: HashMap<u64, (u64, Box<[u8]>)>,
    /// Files in the order in which their tails came; one may be there again.
    order: VecDeque<u64>,
}

impl Dirty {
    /// What is kept of a block that is on the drive, as it was written.
    pub fn tail(&self, ino: u64, block: u64) -> Option<&[u8]> {
        let (of, bytes) = self.tails.get(&ino)?;
        (*of == block).then_some(bytes)
    }

    /// Drops blocks of a file that are on the drive now, but keeps the one where it ends.
    pub fn written(&mut self, ino: u64, from: u64, to: u64, tail: Option<u64>) {
        let kept = tail.filter(|block| (from..to).contains(block));
        let bytes = kept.and_then(|block| Some((block, self.get(ino, block)?.into())));
        self.cut(ino, from, to);
        if let Some(kept) = bytes {
            self.tails.insert(ino, kept);
            self.order.push_back(ino);
        }
    }

    /// Drops the oldest of what is kept until that and all blocks are no more than `most`.
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

    /// Blocks of all files.
    pub const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Of them, those that take space that their files do not have yet.
    pub const fn new_blocks(&self) -> u64 {
        self.new
    }

    /// Blocks that space was not set aside for.
    pub const fn not_preallocated(&self) -> u64 {
        self.blocks - self.preallocated
    }

    /// Whether a file has any.
    pub fn has(&self, ino: u64) -> bool {
        self.files.contains_key(&ino)
    }

    /// A block of a file.
    pub fn get(&self, ino: u64, block: u64) -> Option<&[u8]> {
        self.files.get(&ino)?.get(&block).map(|block| &*block.bytes)
    }

    /// A block of a file, to change it.
    pub fn get_mut(&mut self, ino: u64, block: u64) -> Option<&mut [u8]> {
        let block = self.files.get_mut(&ino)?.get_mut(&block)?;
        Some(&mut block.bytes)
    }

    /// Takes a block in that is not there.
    pub fn put(&mut self, ino: u64, block: u64, bytes: Box<[u8]>, takes: Takes) {
        self.forget_tail(ino, block, block + 1);
        let entry = Block { bytes, takes };
        let old = self.files.entry(ino).or_default().insert(block, entry);
        debug_assert!(old.is_none());
        self.blocks += 1;
        self.new += u64::from(takes == Takes::New);
        self.preallocated += u64::from(takes == Takes::Preallocated);
    }

    /// Drops blocks of a file: they are on the drive, or wanted no more.
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

    /// Files that have any, in order.
    pub fn files(&self) -> impl Iterator<Item = u64> {
        self.files.keys().copied()
    }

    /// The file that has the most.
    pub fn largest(&self) -> Option<u64> {
        let largest = self.files.iter().max_by_key(|(_, blocks)| blocks.len());
        largest.map(|(ino, _)| *ino)
    }

    /// The next block of a file at or behind `block`.
    pub fn next(&self, ino: u64, block: u64) -> Option<u64> {
        let mut rest = self.files.get(&ino)?.range(block..);
        rest.next().map(|(block, _)| *block)
    }

    /// Blocks of a file, in order.
    pub fn of(&self, ino: u64) -> impl Iterator<Item = (u64, &[u8], Takes)> {
        let file = self.files.get(&ino).into_iter().flatten();
        file.map(|(number, block)| (*number, &*block.bytes, block.takes))
    }

    /// Of the blocks of a file, those that take new space.
    pub fn new_of(&self, ino: u64) -> u64 {
        let file = self.files.get(&ino).into_iter().flatten();
        file.filter(|(_, block)| block.takes == Takes::New).count() as u64
    }
}
