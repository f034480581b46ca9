//! Who cleans, as far as others know, and who may.

use super::drive::Drive;
use super::scenario::Coordination;
use super::turns::{Turn, Turns};
use zone_alloc::Watermarks;

/// How drives came to clean, and reads to drives that clean.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Times that a drive began to clean.
    pub begun: u64,
    /// Of these, times that it must, and a drive with a replica of its objects cleaned, or the budget was spent.
    pub forced: u64,
    /// Of those that were not forced, times that a drive with a replica cleaned.
    pub beside: u64,
    /// Turns that were taken back, for a drive with a replica that must.
    pub yielded: u64,
    /// Parts that were read from a drive that cleaned then.
    pub reads_beside: u64,
    /// Parts that were read.
    pub reads: u64,
}

/// See the head of this file.
#[derive(Debug)]
pub struct Coordinator {
    how: Coordination,
    turns: Turns,
    /// By drive: what proxies know.
    known: Vec<bool>,
    cleaning: u32,
    /// What was counted.
    pub counts: Counts,
}

impl Coordinator {
    /// Nobody cleans.
    pub fn new(how: Coordination, turns: Turns, drives: u32) -> Self {
        Self {
            how,
            turns,
            known: vec![false; drives as usize],
            cleaning: 0,
            counts: Counts::default(),
        }
    }

    /// Whether turns are given.
    pub fn gives_turns(&self) -> bool {
        self.how == Coordination::Turns
    }

    /// Whether reads go by the news.
    pub fn orders_reads(&self) -> bool {
        self.how != Coordination::None
    }

    /// Proxies hear whether a drive cleans.
    pub fn hears(&mut self, drive: u32, cleans: bool) {
        self.known[drive as usize] = cleans;
    }

    /// Whether it cleans, as far as proxies know.
    pub fn is_known_to_clean(&self, drive: u32) -> bool {
        self.known[drive as usize]
    }

    /// Two drives share objects from now on.
    pub fn share(&mut self, one: u32, other: u32) {
        self.turns.share(one, other);
    }

    /// Whether a drive with a replica of its objects cleans.
    pub fn is_beside(&self, drive: u32, drives: &[Drive]) -> bool {
        let cleans = |other: &u32| drives[*other as usize].cleaner.since.is_some();
        self.turns.sharing(drive).iter().any(cleans)
    }

    /// A drive begins to clean; `forced` if it was not given a turn and cannot wait.
    pub fn begins(&mut self, drive: u32, forced: bool, drives: &[Drive]) {
        let is_beside = self.is_beside(drive, drives);
        let is_beyond = self.gives_turns() && self.cleaning >= self.turns.budget();
        self.cleaning += 1;
        self.counts.begun += 1;
        if forced && (is_beside || is_beyond) {
            self.counts.forced += 1;
        } else {
            self.counts.beside += u64::from(is_beside);
        }
    }

    /// A drive does not clean any more.
    pub const fn ends(&mut self) {
        self.cleaning -= 1;
    }

    /// Who cleans from now on.
    pub fn choose(&self, drives: &[Drive], free: Watermarks) -> Vec<Turn> {
        let all = (0..).zip(drives).filter(|(_, drive)| !drive.is_lost);
        let wishes: Vec<_> = all
            .filter_map(|(number, drive)| drive.wish(number, free))
            .collect();
        self.turns.choose(&wishes)
    }
}
