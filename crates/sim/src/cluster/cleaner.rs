//! The cleaner of one drive: when it would clean, and which piece it moves next.

use super::job::{Job, Owner, Work};
use super::space::Space;
use drive_model::{Span, Time};
use std::time::Duration;
use zone_alloc::{CleaningPolicy, Pacer, Pressure, Requests, Watermarks};

/// Bytes that are moved at once: a piece of I/O of the store's cleaner.
pub const PIECE_BYTES: u64 = 512 << 10;

/// Bytes of a piece of parts of `part_bytes`: a piece of a large one, or as many small ones as fit.
pub const fn piece_bytes(part_bytes: u64) -> u64 {
    if part_bytes >= PIECE_BYTES {
        PIECE_BYTES
    } else {
        PIECE_BYTES / part_bytes * part_bytes
    }
}

/// How urgently a drive needs to clean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// The drive has something to clean, and can wait.
    Wants,
    /// Writes wait for a zone, or soon will.
    Must,
}

/// Bytes that are being moved: where from, where to, and how many are left.
#[derive(Clone, Copy, Debug)]
struct Moving {
    from: u64,
    to: u64,
    left: u64,
}

/// The next step of a cleaner.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Next {
    /// Move this piece.
    Move(Job),
    /// Reset the zone that begins at this byte of the data: it is empty.
    Reset(u64),
    /// Do nothing before this time.
    Wait(Time),
    /// No zone is worth cleaning.
    Nothing,
}

/// The work that a cleaner has done.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Bytes moved.
    pub moved_bytes: u64,
    /// Zones reset.
    pub zones: u64,
    /// Time in which it cleaned, or was about to move the next piece.
    pub cleaning: Span,
}

/// The state of a drive's cleaner.
#[derive(Clone, Debug)]
pub struct Cleaner {
    pacer: Pacer,
    moving: Option<Moving>,
    /// Whether a piece is being moved.
    pub has_piece: bool,
    /// When it began to clean, if it is cleaning.
    pub since: Option<Time>,
    /// Whether all zones with dead bytes are to be cleaned, however many are free.
    pub asked: bool,
    counts: Counts,
}

fn clock(time: Time) -> Duration {
    Duration::from_nanos(time.nanos())
}

impl Cleaner {
    /// A cleaner that is not cleaning.
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

    /// Whether its pace counts a read that took this long as slow.
    pub fn is_slow(&self, took: Span) -> bool {
        let above = self.pacer.slow_above();
        above.is_some_and(|above| Duration::from_nanos(took.nanos()) > above)
    }

    /// How urgently the drive needs to clean, and how much a zone has to gain. `free` has the watermarks, `filled`
    /// the zones that will be filled before the drive may clean; `is_waited_for` says that writes wait for a zone.
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

    /// The next step at `now`. The pace holds only for [`Need::Wants`].
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
            // The last live objects have died meanwhile: the next call resets the zone.
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

    /// Takes the next piece out of the zone that is being cleaned: one object, or several small ones that come to lie
    /// side by side in one zone.
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

    /// Begins or ends cleaning at `now`.
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

    /// The work done until `now`.
    pub fn counts(&self, now: Time) -> Counts {
        let since = self.since.map_or(Span::ZERO, |since| now.since(since));
        Counts {
            cleaning: self.counts.cleaning + since,
            ..self.counts
        }
    }
}
