//! A blob: bytes that were written together, with their places and checksums.
//!
//! `raw` bytes were encoded by the codec into the stored bytes, which lie in fragments. A checksum covers each checksum
//! block of the stored bytes; the last block may be shorter. Without a codec, raw and stored bytes are the same; with
//! one, a blob can only be read and released as a whole.

use crate::References;
use crate::fragment::{Fragment, push, push_part};
use zone::ZoneAddress;

/// Most bytes that one blob stores.
pub const MAX_STORED: u32 = 4 << 20;

/// Codec of the raw bytes. The numbers are the on-disk ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Codec {
    /// Stored as they are.
    None = 0,
    /// Zstandard (RFC 8878).
    Zstd = 1,
    /// An LZ4 block without a frame.
    Lz4 = 2,
}

/// Kind of checksum. The numbers are the on-disk ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChecksumKind {
    /// No checksum.
    None = 0,
    /// CRC-32C (RFC 3720).
    Crc32c = 1,
    /// The low 32 bits of XXH3-64 with seed 0.
    Xxh3 = 2,
}

/// Bytes under one checksum: a power of two from 4 KiB to 128 KiB.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ChecksumBlock(u8);

impl ChecksumBlock {
    /// 64 KiB: the default for objects.
    pub const DEFAULT: Self = Self(16);

    /// All sizes, smallest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (12..=17).map(Self)
    }

    /// The size `1 << shift`; `None` if that is not allowed.
    pub fn from_shift(shift: u8) -> Option<Self> {
        (12..=17).contains(&shift).then_some(Self(shift))
    }

    /// log2 of the size.
    pub fn shift(self) -> u8 {
        self.0
    }

    /// The size in bytes.
    pub const fn bytes(self) -> u32 {
        1 << self.0
    }
}

/// Bytes that were written together, with their places and checksums.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blob {
    /// Encoding of the stored bytes.
    pub codec: Codec,
    /// Bytes before encoding.
    pub raw: u32,
    /// The stored bytes in order; 1 to [`MAX_STORED`] together.
    pub fragments: Vec<Fragment>,
    /// Kind of `checksums`.
    pub checksum_kind: ChecksumKind,
    /// Stored bytes under each of `checksums`.
    pub checksum_block: ChecksumBlock,
    /// A checksum for each checksum block of the stored bytes; empty for [`ChecksumKind::None`].
    pub checksums: Vec<u32>,
}

impl Blob {
    /// Bytes after encoding, released ones included.
    pub fn stored(&self) -> u32 {
        self.fragments.iter().map(|f| f.length).sum()
    }

    /// Bytes that the blob takes on the drive, padding included and released ones not.
    pub fn padded(&self, block_size: u32) -> u64 {
        let there = self.fragments.iter().filter(|f| f.at.is_some());
        there.map(|f| f.padded(block_size)).sum()
    }

    /// Where the stored byte `offset` lies; `None` if it was released or is beyond the end.
    pub fn place(&self, offset: u32) -> Option<ZoneAddress> {
        let mut begins = 0;
        for fragment in &self.fragments {
            if offset < begins + fragment.length {
                let within = u64::from(offset - begins);
                return fragment
                    .at
                    .map(|at| ZoneAddress::new(at.zone, at.offset + within));
            }
            begins += fragment.length;
        }
        None
    }

    /// Whether every part of it can be read on its own.
    pub fn is_divisible(&self) -> bool {
        self.codec == Codec::None
    }

    /// Bytes that have to stay together: a checksum block, or a block of the drive if that is larger.
    pub fn unit(&self, block_size: u32) -> u32 {
        self.checksum_block.bytes().max(block_size)
    }

    /// The stored bytes needed to read the raw bytes `from..to`: whole units, or all of a blob with a codec.
    pub fn needed(&self, from: u32, to: u32, block_size: u32) -> std::ops::Range<u32> {
        if self.is_divisible() {
            self.units(from, to, block_size)
        } else {
            0..self.stored()
        }
    }

    /// The whole units that contain the stored bytes `from..to`.
    pub fn units(&self, from: u32, to: u32, block_size: u32) -> std::ops::Range<u32> {
        let stored = self.stored();
        let unit = self.unit(block_size);
        let end = u64::from(to).next_multiple_of(unit.into());
        from / unit * unit..end.min(stored.into()) as u32
    }

    /// The units with the raw bytes `from..to` as a blob, and the number of bytes in it before `from`. The blob is
    /// divisible and `from < to <= raw`.
    pub(crate) fn slice(&self, from: u32, to: u32, block_size: u32) -> (Self, u32) {
        let needed = self.needed(from, to, block_size);
        let mut fragments = Vec::new();
        push_part(&mut fragments, &self.fragments, needed.start, needed.end);
        let block = self.checksum_block.bytes();
        let checksums = match self.checksum_kind {
            ChecksumKind::None => Vec::new(),
            _ => {
                let blocks = needed.start / block..needed.end.div_ceil(block);
                self.checksums[blocks.start as usize..blocks.end as usize].to_vec()
            }
        };
        let slice = Self {
            raw: needed.end - needed.start,
            fragments,
            checksums,
            ..*self
        };
        (slice, from - needed.start)
    }

    /// Releases the units that nothing refers to. Does nothing for a blob with a codec.
    pub fn release(&mut self, references: &References, block_size: u32) {
        if !self.is_divisible() {
            return;
        }
        let (unit, stored) = (self.unit(block_size), self.stored());
        let old = std::mem::take(&mut self.fragments);
        let mut next = 0;
        for gap in references.gaps(stored) {
            let start = gap.start.next_multiple_of(unit);
            let end = match gap.end {
                end if end == stored => end,
                end => end / unit * unit,
            };
            if start < end {
                push_part(&mut self.fragments, &old, next, start);
                let length = end - start;
                push(&mut self.fragments, Fragment { at: None, length });
                next = end;
            }
        }
        push_part(&mut self.fragments, &old, next, stored);
    }

    /// The blob with fragments at other places: `moved` returns the new fragments for the one with this index, of the
    /// same length together, or `None` if it stays.
    pub fn relocated(&self, mut moved: impl FnMut(usize) -> Option<Vec<Fragment>>) -> Self {
        let mut fragments = Vec::new();
        for (index, old) in self.fragments.iter().enumerate() {
            for fragment in moved(index).unwrap_or_else(|| vec![*old]) {
                push(&mut fragments, fragment);
            }
        }
        Self {
            fragments,
            checksums: self.checksums.clone(),
            ..*self
        }
    }
}
