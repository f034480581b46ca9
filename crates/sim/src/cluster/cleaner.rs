//! The cleaner of one drive: when it would clean, and which piece it moves next.

use super::job::{Job, Owner, Work};
use super::space::Space;
use drive_model::{Span, Time};
use std::time::Duration;
use zone_alloc::{CleaningPolicy, Pacer, Pressure, Requests, Watermarks};

/// Bytes that are moved at once: a piece of I/O of the store's cleaner.
pub const PIECE_BYTES: u64 = 512 << 10;

/// Bytes of a piece where objects have parts of so many bytes: a piece of one, or several whole.
pub const fn piece_bytes(part_bytes: u64) -> u64 {
    if part_bytes >= PIECE_BYTES {
        PIECE_BYTES
    } else {
        PIECE_BYTES / part_bytes * part_bytes
    }
}

/// How much a drive needs to clean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// It would like to, and can wait.
    Wants,
    /// It has to: writes wait, or soon will.
    Must,
}

/// What is being moved.
#[derive(Clone, Copy, Debug)]
struct Moving {
    from: u64,
    to: u64,
    left: u64,
}

/// What to do next.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Next {
    /// Move this.
    Move(Job),
    /// The zone that begins at this byte is empty.
    Reset(u64),
    /// Nothing before then.
    Wait(Time),
    /// Nothing is worth it.
    Nothing,
}

/// What it did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Bytes moved.
    pub moved_bytes: u64,
    /// Zones reset.
    pub zones: u64,
    /// Time in which it cleaned, or was about to move the next piece.
    pub cleaning: Span,
}

/// See the head of this file.
#[derive(Clone, Debug)]
pub struct Cleaner {
    pacer: Pacer,
    moving: Option<Moving>,
    /// A piece is under way.
    pub has_piece: bool,
    /// Since when it cleans.
    pub since: Option<Time>,
    /// All zones with dead bytes are to be cleaned, however many are free.
    pub asked: bool,
    counts: Counts,
}

fn clock(time: Time) -> Duration {
    Duration::from_nanos(time.nanos())
}

impl Cleaner {
    /// One that does nothing.
    pub const fn new(pacer: Pacer) -> Self {
        Self {
            pacer,
            moving: None,
            has_piece: false,
            since: None,
            asked: false,
            counts: Counts {
                moved_bytes: 0,
                zones: 0,
                cleaning: Span::ZERO,
            },
        }
    }

    /// Whether a read that took so long is slow, by its pace.
    pub fn is_slow(&self, took: Span) -> bool {
        let above = self.pacer.slow_above();
        above.is_some_and(|above| Duration::from_nanos(took.nanos()) > above)
    }

    /// How much the drive needs to clean, and what a zone has to gain for it, where so many zones are to be free and so many
    /// more will be filled until it may clean.
    pub fn need(
        &self,
        space: &Space,
        (free, filled): (Watermarks, u32),
        is_waited_for: bool,
    ) -> Option<(Need, Pressure)> {
        let zones = space.zones()?;
        if is_waited_for {
            return Some((Need::Must, Pressure::Any));
        }
        match free.pressure_before(zones.free(), zones.zones(), filled) {
            Some(Pressure::Urgent) => Some((Need::Must, Pressure::Urgent)),
            Some(pressure) => Some((Need::Wants, pressure)),
            None if zones.has_victim() => Some((Need::Wants, Pressure::Ahead)),
            None if self.asked && zones.has_dead() => Some((Need::Wants, Pressure::Any)),
            None => None,
        }
    }

    /// What comes next at `now`, for a need.
    pub fn next(
        &mut self,
        space: &mut Space,
        policy: &dyn CleaningPolicy,
        (need, pressure): (Need, Pressure),
        (now, users): (Time, &Requests),
        part_bytes: u64,
    ) -> Next {
        if self.moving.is_none() {
            if !space.begin(policy, pressure) {
                return Next::Nothing;
            }
            if let Some(zone) = space
                .zones_mut()
                .and_then(super::zone_slots::ZoneSlots::reset)
            {
                self.counts.zones += 1;
                return Next::Reset(space.byte(super::zone_slots::Slot { zone, number: 0 }));
            }
        }
        if need == Need::Wants {
            let at = self.pacer.next(clock(now), users);
            let at = Time::from_nanos(u64::try_from(at.as_nanos()).unwrap_or(u64::MAX));
            if at > now {
                return Next::Wait(at);
            }
        }
        let Some(moving) = self
            .moving
            .take()
            .or_else(|| Self::begin(space, part_bytes))
        else {
            // What was left has died meanwhile.
            return Next::Wait(now);
        };
        let bytes = moving.left.min(PIECE_BYTES);
        self.pacer.spend(2 * bytes, clock(now));
        self.counts.moved_bytes += bytes;
        let rest = Moving {
            from: moving.from + bytes,
            to: moving.to + bytes,
            left: moving.left - bytes,
        };
        self.moving = (rest.left > 0).then_some(rest);
        self.has_piece = true;
        Next::Move(Job {
            owner: Owner::Cleaner,
            work: Work::Move,
            bytes,
            from: moving.from,
            to: moving.to,
        })
    }

    /// The next objects of the zone in hand that make a piece: one, or several that are small and come to lie in one
    /// zone.
    fn begin(space: &mut Space, part_bytes: u64) -> Option<Moving> {
        let (from, first) = space.zones_mut()?.move_one()?;
        let (mut last, mut left) = (first, part_bytes);
        while left + part_bytes <= PIECE_BYTES && !space.zones()?.is_full(last.zone) {
            let Some((_, to)) = space.zones_mut()?.move_one() else {
                break;
            };
            last = to;
            left += part_bytes;
        }
        Some(Moving {
            from: space.byte(from).saturating_sub(left - part_bytes),
            to: space.byte(first),
            left,
        })
    }

    /// It cleans from now on, or does not.
    pub fn set_cleaning(&mut self, is_so: bool, now: Time) {
        match (is_so, self.since) {
            (true, None) => self.since = Some(now),
            (false, Some(since)) => {
                self.counts.cleaning += now.since(since);
                self.since = None;
            }
            _ => {}
        }
    }

    /// What it has done until `now`.
    pub fn counts(&self, now: Time) -> Counts {
        let since = self.since.map_or(Span::ZERO, |since| now.since(since));
        Counts {
            cleaning: self.counts.cleaning + since,
            ..self.counts
        }
    }
}
