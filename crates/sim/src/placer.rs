//! The interface of a placement, which puts each block into a stream.

/// Whether a block is one of those that get more writes than others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heat {
    /// A block that gets more writes than others.
    Hot,
    /// Any other block; without a skew, each block.
    Cold,
}

/// Puts blocks into streams. Times are counts of blocks that the user has written.
pub trait Placer {
    /// The number of streams, each of which has an open zone.
    fn streams(&self) -> usize;

    /// The stream of a block that the user writes.
    fn written(&mut self, block: u32, heat: Heat, now: u64) -> usize;

    /// The stream of a block that is moved out of a zone of stream `from`.
    fn moved(&mut self, block: u32, heat: Heat, from: usize, now: u64) -> usize;

    /// A zone of `stream` was emptied, `age` after its first block was written.
    fn emptied(&mut self, _stream: usize, _age: u64) {}
}
