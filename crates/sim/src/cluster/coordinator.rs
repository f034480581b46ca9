//! Coordinates the cleaning of drives: which drives proxies know to be cleaning, and which have a turn ([`decide`]).

use super::drive::Drive;
use super::groups::Groups;
use super::scenario::Coordination;
use super::turns::{HOLD_SECONDS, Rules, Table, Told, decide};
use drive_model::{Span, Time};
use std::collections::{BTreeMap, BTreeSet};
use zone_alloc::Watermarks;

/// How drives came to clean, and how many reads found their drive cleaning.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Times that a drive began to clean.
    pub begun: u64,
    /// Of these, times without a turn, because the drive had to clean.
    pub forced: u64,
    /// Of those that were not forced, times that more drives with parts of one object were then cleaning than may at
    /// once.
    pub beside: u64,
    /// Turns that were taken back for a drive with a replica that had to clean.
    pub yielded: u64,
    /// Parts that users read from a drive that was cleaning.
    pub reads_beside: u64,
    /// Parts that users read.
    pub reads: u64,
}

/// The last table of turns and the state of all drives' cleaning.
#[derive(Debug)]
pub struct Coordinator {
    how: Coordination,
    groups: Groups,
    rules: Rules,
    /// The table that was decided last; `said_at` has the time.
    table: Table,
    said_at: Option<Time>,
    /// By drive: whether proxies have heard that it is cleaning.
    known: Vec<bool>,
    /// By group: drives that are cleaning and were not forced.
    cleaning: Vec<u32>,
    /// By drive: whether it is counted in `cleaning`.
    counted: Vec<bool>,
    /// The counts so far.
    pub counts: Counts,
}

impl Coordinator {
    /// A coordinator of drives none of which is cleaning.
    pub fn new(how: Coordination, groups: Groups, rules: Rules, drives: u32) -> Self {
        Self {
            how,
            cleaning: groups.count(&BTreeSet::new()),
            groups,
            rules,
            table: Table::default(),
            said_at: None,
            known: vec![false; drives as usize],
            counted: vec![false; drives as usize],
            counts: Counts::default(),
        }
    }

    /// Whether turns are given.
    pub fn gives_turns(&self) -> bool {
        self.how == Coordination::Turns
    }

    /// Whether reads prefer drives that are not known to clean.
    pub fn orders_reads(&self) -> bool {
        self.how != Coordination::None
    }

    /// Number of shifts, if drives have their turns by shifts.
    pub fn shifts(&self) -> Option<u32> {
        self.groups.shift_count().filter(|_| self.gives_turns())
    }

    /// Proxies hear whether a drive cleans.
    pub fn hears(&mut self, drive: u32, cleans: bool) {
        self.known[drive as usize] = cleans;
    }

    /// Whether a drive cleans or has a turn, as far as proxies know. They read a table of turns at the same time as
    /// drives.
    pub fn is_known_to_clean(&self, drive: u32, now: Time, drives: &[Drive]) -> bool {
        self.known[drive as usize] || drives[drive as usize].turn_until > now
    }

    /// Puts a drive that gets a part of a partition into its group.
    pub fn join(&mut self, drive: u32, partition: u32) {
        let was_in = self.groups.of(drive).contains(&partition);
        self.groups.join(drive, partition);
        self.cleaning[partition as usize] += u32::from(!was_in && self.counted[drive as usize]);
    }

    /// Counts a drive that begins to clean; `forced` if it has no turn and cannot wait.
    pub fn begins(&mut self, drive: u32, forced: bool) {
        self.counts.begun += 1;
        self.counts.forced += u64::from(forced);
        self.counted[drive as usize] = !forced;
        if forced {
            return;
        }
        let mut is_beside = false;
        for group in self.groups.of(drive) {
            let group = *group as usize;
            self.cleaning[group] += 1;
            is_beside |= self.cleaning[group] > self.groups.limit(group);
        }
        self.counts.beside += u64::from(is_beside);
    }

    /// Counts a drive that ends cleaning.
    pub fn ends(&mut self, drive: u32) {
        if std::mem::take(&mut self.counted[drive as usize]) {
            for group in self.groups.of(drive) {
                self.cleaning[*group as usize] -= 1;
            }
        }
    }

    /// A round of turns: drives and proxies follow the last table; then the drives report, and the next table is
    /// decided.
    pub fn goes_on(&mut self, drives: &mut [Drive], free: Watermarks, now: Time) {
        if let Some(at) = self.said_at {
            for (number, drive) in (0..).zip(&mut *drives) {
                let turn = self.table.turn_of(number);
                let had = drive.turn_until > now;
                let until = now + Span::from_seconds(turn.unwrap_or(0.0));
                self.counts.yielded +=
                    u64::from(had && turn.is_none() && drive.cleaner.since.is_some());
                drive.turn_until = until;
                drive.hold_until = until + Span::from_seconds(HOLD_SECONDS);
                drive.followed = self.table.round;
                drive.looks_ahead(now);
            }
            let told: BTreeMap<u32, Told> = (0..)
                .zip(&*drives)
                .filter(|(_, drive)| !drive.is_lost)
                .map(|(number, drive)| (number, drive.told(free, now)))
                .collect();
            let elapsed = now.since(at).seconds();
            self.table = decide(&self.groups, &told, &self.table, elapsed, &self.rules);
        } else {
            for drive in drives {
                drive.hold_until = now + Span::from_seconds(HOLD_SECONDS);
            }
        }
        self.said_at = Some(now);
    }
}
