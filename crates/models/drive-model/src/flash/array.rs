//! The flash array: the time that dies and channels take to sense, program and erase, and the wear of superblocks.
//!
//! A *program unit* is what a die programs at once: some pages of each of its planes. A *superblock* is an erase
//! block of each plane of every die. Consecutive program units of a superblock are on consecutive dies; a *slot* is
//! the place of a block of 4 KiB, numbered through units and superblocks.

use super::server::{Class, Server};
use crate::profile_error::{ProfileError, must};
use crate::request::BLOCK_BYTES;
use crate::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// Parameters of the flash, as in a profile.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashShape {
    /// Channels from the controller to dies.
    pub channels: u32,
    /// Number of dies on each channel.
    pub dies_per_channel: u32,
    /// Number of planes of a die, which are read, programmed and erased together.
    pub planes: u32,
    /// Bytes of a page of one plane, a multiple of 4,096.
    pub page_bytes: u32,
    /// Number of pages of a plane that are programmed at once: the bits of a cell, or 1.
    pub pages_per_program: u32,
    /// Number of program units in an erase block.
    pub programs_per_block: u32,
    /// Microseconds to sense a page.
    pub read_us: f64,
    /// Microseconds to program a unit.
    pub program_us: f64,
    /// Milliseconds to erase a block.
    pub erase_ms: f64,
    /// Microseconds that a read waits for a die that programs or erases to suspend.
    pub suspend_us: f64,
    /// Bytes a second of a channel.
    pub channel_bytes_per_second: u64,
}

/// Limit on channels, and on dies of one: a model keeps some tens of bytes for each die.
const MOST_DIES: u32 = 1 << 11;

/// Counters of the flash.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Counts {
    /// Pages that were sensed.
    pub senses: u64,
    /// Blocks of 4 KiB that were programmed, including moved blocks and padding.
    pub programmed_blocks: u64,
    /// Of these, blocks with valid data from other erase blocks.
    pub moved_blocks: u64,
    /// Of these, blocks without data: the rest of zones that were finished.
    pub padded_blocks: u64,
    /// Superblocks that were erased.
    pub erases: u64,
}

impl Counts {
    /// The difference to `earlier`, which is of the same drive.
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            senses: self.senses - earlier.senses,
            programmed_blocks: self.programmed_blocks - earlier.programmed_blocks,
            moved_blocks: self.moved_blocks - earlier.moved_blocks,
            padded_blocks: self.padded_blocks - earlier.padded_blocks,
            erases: self.erases - earlier.erases,
        }
    }
}

/// Erase counts of superblocks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Wear {
    /// The smallest count.
    pub least: u32,
    /// The largest count.
    pub most: u32,
    /// The mean.
    pub mean: f64,
}

/// The state of dies and channels, and counters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Array {
    dies: Vec<Server>,
    channels: Vec<Server>,
    /// Blocks of a page of all planes, of a program unit, of a superblock.
    page_blocks: u32,
    unit_blocks: u32,
    superblock_blocks: u32,
    read: Span,
    program: Span,
    erase: Span,
    suspend: Span,
    channel_bytes_per_second: u64,
    erases: Vec<u32>,
    pub(super) counts: Counts,
}

impl FlashShape {
    /// Blocks of 4 KiB in a superblock; `None` if a parameter is 0 or the result exceeds 32 bits.
    pub fn superblock_blocks(&self) -> Option<u32> {
        self.channels
            .checked_mul(self.dies_per_channel)?
            .checked_mul(self.unit_blocks()?)?
            .checked_mul(self.programs_per_block)
            .filter(|blocks| *blocks > 0)
    }

    /// Blocks of 4 KiB in a program unit; `None` if the result exceeds 32 bits.
    pub fn unit_blocks(&self) -> Option<u32> {
        self.planes
            .checked_mul(self.page_bytes / BLOCK_BYTES as u32)?
            .checked_mul(self.pages_per_program)
    }

    /// Checks that the parameters are possible.
    pub(super) fn check(&self) -> Result<(), ProfileError> {
        let page = u64::from(self.page_bytes);
        must(
            page > 0 && page.is_multiple_of(BLOCK_BYTES),
            "flash.page_bytes",
            page,
            "a multiple of 4,096, and not 0",
        )?;
        for (field, count, most) in [
            ("flash.channels", self.channels, MOST_DIES),
            ("flash.dies_per_channel", self.dies_per_channel, MOST_DIES),
            ("flash.planes", self.planes, u32::MAX),
            ("flash.pages_per_program", self.pages_per_program, u32::MAX),
            (
                "flash.programs_per_block",
                self.programs_per_block,
                u32::MAX,
            ),
        ] {
            let fits = (1..=most).contains(&count);
            must(fits, field, count, format_args!("1 to {most}"))?;
        }
        must(
            self.superblock_blocks().is_some(),
            "flash.programs_per_block",
            self.programs_per_block,
            "so small that a superblock has less than 16 TiB: channels, dies_per_channel, planes, page_bytes, \
             pages_per_program and this multiplied",
        )
    }
}

impl Array {
    /// New flash, of a shape that was checked.
    pub(super) fn new(shape: &FlashShape, superblocks: u32) -> Self {
        let unit_blocks = shape.unit_blocks().unwrap_or(0);
        Self {
            dies: vec![Server::default(); (shape.channels * shape.dies_per_channel) as usize],
            channels: vec![Server::default(); shape.channels as usize],
            page_blocks: unit_blocks / shape.pages_per_program,
            unit_blocks,
            superblock_blocks: shape.superblock_blocks().unwrap_or(0),
            read: Span::from_micros(shape.read_us),
            program: Span::from_micros(shape.program_us),
            erase: Span::from_millis(shape.erase_ms),
            suspend: Span::from_micros(shape.suspend_us),
            channel_bytes_per_second: shape.channel_bytes_per_second,
            erases: vec![0; superblocks as usize],
            counts: Counts::default(),
        }
    }

    /// Number of superblocks.
    pub const fn superblocks(&self) -> u32 {
        self.erases.len() as u32
    }

    /// Blocks of 4 KiB in a superblock.
    pub const fn superblock_blocks(&self) -> u32 {
        self.superblock_blocks
    }

    /// Blocks of 4 KiB in a program unit.
    pub const fn unit_blocks(&self) -> u32 {
        self.unit_blocks
    }

    /// Counters since the start.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Erase count of a superblock.
    pub fn erases(&self, superblock: u32) -> u32 {
        self.erases[superblock as usize]
    }

    /// How often superblocks were erased.
    pub fn wear(&self) -> Wear {
        let all = self.erases.iter().map(|n| u64::from(*n)).sum::<u64>();
        Wear {
            least: self.erases.iter().min().copied().unwrap_or(0),
            most: self.erases.iter().max().copied().unwrap_or(0),
            mean: all as f64 / self.erases.len().max(1) as f64,
        }
    }

    /// Whether two slots are sensed together.
    pub(super) const fn same_page(&self, one: u64, other: u64) -> bool {
        one / self.page_blocks as u64 == other / self.page_blocks as u64
    }

    const fn die(&self, slot: u64) -> usize {
        (slot / self.unit_blocks as u64 % self.dies.len() as u64) as usize
    }

    const fn transfer(&self, blocks: u64) -> Span {
        Span::transfer(blocks * BLOCK_BYTES, self.channel_bytes_per_second)
    }

    /// Reads `blocks` consecutive slots; returns the time when all are in the controller.
    pub(super) fn read(&mut self, now: Time, slot: u64, blocks: u64) -> Time {
        let mut at = now;
        let (mut next, end) = (slot, slot + blocks);
        while next < end {
            let unit_end = (next / u64::from(self.unit_blocks) + 1) * u64::from(self.unit_blocks);
            let until = unit_end.min(end);
            let page = u64::from(self.page_blocks);
            let senses = (until - 1) / page - next / page + 1;
            let sensed = self.sense(Class::Urgent, now, next, senses);
            at = at.max(self.fetch(Class::Urgent, sensed, next, until - next));
            next = until;
        }
        at
    }

    /// Senses `pages` pages of one die, beginning with the one that holds `slot`.
    pub(super) fn sense(&mut self, class: Class, now: Time, slot: u64, pages: u64) -> Time {
        self.counts.senses += pages;
        let die = self.die(slot);
        let takes = self.read.times(pages);
        self.dies[die].serve(class, now, takes, self.suspend)
    }

    /// Transfers sensed blocks to the controller.
    pub(super) fn fetch(&mut self, class: Class, now: Time, slot: u64, blocks: u64) -> Time {
        let takes = self.transfer(blocks);
        let one = self.transfer(u64::from(self.page_blocks));
        self.channel(slot).serve(class, now, takes, one)
    }

    fn channel(&mut self, slot: u64) -> &mut Server {
        let channel = self.die(slot) % self.channels.len();
        &mut self.channels[channel]
    }

    /// Programs the unit that begins at `slot`.
    pub(super) fn program(&mut self, class: Class, now: Time, slot: u64) -> Time {
        self.counts.programmed_blocks += u64::from(self.unit_blocks);
        let takes = self.transfer(u64::from(self.unit_blocks));
        let there = self.channel(slot).serve(class, now, takes, takes);
        let die = self.die(slot);
        self.dies[die].serve(class, there, self.program, self.program)
    }

    /// Erases a superblock on all dies, after the work that they have.
    pub(super) fn erase(&mut self, now: Time, superblock: u32) {
        self.counts.erases += 1;
        self.erases[superblock as usize] += 1;
        for die in &mut self.dies {
            die.serve(Class::Normal, now, self.erase, Span::ZERO);
        }
    }
}
