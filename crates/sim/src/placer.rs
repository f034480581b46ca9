//! What a placement is asked.

/// Whether a block is one of those that get more writes than others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Heat {
    /// It is.
    Hot,
    /// It is not; without a skew, none is.
    Cold,
}

/// A placement at work. Times are counts of blocks that the user wrote.
pub trait Placer {
    /// Streams, each with an open zone.
    fn streams(&self) -> usize;

    /// The stream of a block that the user writes.
    fn written(&mut self, block: u32, heat: Heat, now: u64) -> usize;

    /// The stream of a block that is moved out of a zone of `from`.
    fn moved(&mut self, block: u32, heat: Heat, from: usize, now: u64) -> usize;

    /// A zone of `stream` was emptied, `age` after its first block was written.
    fn emptied(&mut self, _stream: usize, _age: u64) {}
}
