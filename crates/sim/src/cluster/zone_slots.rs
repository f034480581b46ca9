//! Objects of one size in the zones of a drive. Only the live objects of each zone are counted: which object dies, is
//! read or is moved is drawn at random.

use zone::ZoneId;
use zone_alloc::{Candidate, CleaningPolicy, Pressure, Watermarks, ZoneView};

const NOWHERE: u32 = u32::MAX;
/// Free zones that are reserved for the cleaner.
const KEPT: usize = 2;
/// Zones besides those that data may fill: those of the cleaner, and one for the open zones of two streams, each of
/// which is half full on average.
pub const BESIDE: u32 = KEPT as u32 + 1;

/// Streams of writes, each with its own open zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// Objects of users.
    New = 0,
    /// Objects that the cleaner moves.
    Moved = 1,
}

/// A place for an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// Its zone.
    pub zone: u32,
    /// Its number in the zone, from 0.
    pub number: u32,
}

/// Live and written slots by zone, free and open zones, and the zone that is being cleaned.
#[derive(Clone, Debug)]
pub struct ZoneSlots {
    /// Slots of each zone.
    slots: u32,
    live: Vec<u32>,
    written: Vec<u32>,
    free: Vec<u32>,
    /// By [`Stream`]: its open zone.
    open: [Option<u32>; 2],
    /// Full zones without the one that is being cleaned, measured in slots.
    full: Vec<Candidate>,
    /// By zone: its index in `full`; `NOWHERE` if it is not there.
    index: Vec<u32>,
    victim: Option<u32>,
    all_live: u64,
    now: u64,
}

impl ZoneSlots {
    /// A drive with `zones` empty zones for data, of `slots` slots each.
    pub fn new(zones: u32, slots: u32) -> Self {
        let all = (zones + BESIDE) as usize;
        Self {
            slots,
            live: vec![0; all],
            written: vec![0; all],
            free: (0..zones + BESIDE).rev().collect(),
            open: [None; 2],
            full: Vec::with_capacity(all),
            index: vec![NOWHERE; all],
            victim: None,
            all_live: 0,
            now: 0,
        }
    }

    /// Zones for data.
    pub fn zones(&self) -> u32 {
        self.live.len() as u32 - BESIDE
    }

    /// Objects that a zone holds.
    pub const fn slots(&self) -> u32 {
        self.slots
    }

    /// Zones that new data may still take.
    pub fn free(&self) -> u32 {
        self.free.len().saturating_sub(KEPT) as u32
    }

    /// Live objects.
    pub const fn live(&self) -> u64 {
        self.all_live
    }

    /// Whether a new object finds a place without cleaning.
    pub fn has_room(&self) -> bool {
        self.open[Stream::New as usize].is_some() || self.free() > 0
    }

    /// Appends an object to the open zone of a stream. `None` if that needs a zone and none is free for it.
    pub fn write(&mut self, stream: Stream) -> Option<Slot> {
        let open = self.open[stream as usize];
        let zone = match open {
            Some(zone) => zone,
            None if stream == Stream::New && self.free() == 0 => return None,
            None => self.free.pop()?,
        };
        let number = self.written[zone as usize];
        self.written[zone as usize] += 1;
        self.live[zone as usize] += 1;
        self.all_live += 1;
        self.now += 1;
        let is_full = number + 1 == self.slots;
        self.open[stream as usize] = (!is_full).then_some(zone);
        if is_full {
            self.index[zone as usize] = self.full.len() as u32;
            self.full.push(Candidate {
                zone: ZoneId(zone),
                live: self.live[zone as usize].into(),
                written: self.slots.into(),
                filled_at: self.now,
            });
        }
        Some(Slot { zone, number })
    }

    /// Draws a zone, with a probability in proportion to its live objects; `None` if nothing is live.
    fn any_live_zone(&self, random: &mut fastrand::Rng) -> Option<u32> {
        if self.all_live == 0 {
            return None;
        }
        loop {
            let zone = random.u32(..self.live.len() as u32);
            if random.u32(..self.slots) < self.live[zone as usize] {
                return Some(zone);
            }
        }
    }

    /// A slot that may hold a live object: any written one of a zone that `any_live_zone` draws.
    pub fn any_live(&self, random: &mut fastrand::Rng) -> Option<Slot> {
        let zone = self.any_live_zone(random)?;
        let number = random.u32(..self.written[zone as usize].max(1));
        Some(Slot { zone, number })
    }

    /// Makes a live object dead, drawn at random.
    pub fn kill(&mut self, random: &mut fastrand::Rng) {
        if let Some(zone) = self.any_live_zone(random) {
            self.dies(zone);
        }
    }

    fn dies(&mut self, zone: u32) {
        self.live[zone as usize] -= 1;
        self.all_live -= 1;
        if let Some(full) = self.full.get_mut(self.index[zone as usize] as usize) {
            full.live -= 1;
        }
    }

    /// Whether cleaning any full zone would gain something.
    pub fn has_dead(&self) -> bool {
        self.victim.is_some() || self.full.iter().any(|zone| zone.live < zone.written)
    }

    /// By zone: slots that have been written.
    pub fn written(&self) -> &[u32] {
        &self.written
    }

    /// Whether a zone has no room left.
    pub fn is_full(&self, zone: u32) -> bool {
        self.written[zone as usize] >= self.slots
    }

    /// Whether a zone is being cleaned.
    pub const fn has_victim(&self) -> bool {
        self.victim.is_some()
    }

    /// Begins to clean the zone that the policy chooses, unless one is being cleaned. Returns whether one is.
    pub fn begin(&mut self, policy: &dyn CleaningPolicy, pressure: Pressure) -> bool {
        if self.victim.is_some() {
            return true;
        }
        let view = ZoneView {
            zones: &self.full,
            now: self.now,
        };
        let Some(victim) = policy.choose(view, pressure) else {
            return false;
        };
        let zone = victim.zone.0;
        let index = std::mem::replace(&mut self.index[zone as usize], NOWHERE) as usize;
        self.full.swap_remove(index);
        if let Some(moved) = self.full.get(index) {
            self.index[moved.zone.index()] = index as u32;
        }
        self.victim = Some(zone);
        true
    }

    /// Moves an object out of the zone that is being cleaned. Returns its old and its new slot; `None` if none is
    /// left.
    pub fn move_one(&mut self) -> Option<(Slot, Slot)> {
        let zone = self.victim.filter(|zone| self.live[*zone as usize] > 0)?;
        let to = self.write(Stream::Moved)?;
        self.dies(zone);
        let number = self.live[zone as usize];
        Some((Slot { zone, number }, to))
    }

    /// Resets the zone that is being cleaned, if nothing in it is live. Returns its number.
    pub fn reset(&mut self) -> Option<u32> {
        let zone = self.victim.take_if(|zone| self.live[*zone as usize] == 0)?;
        self.written[zone as usize] = 0;
        self.free.push(zone);
        Some(zone)
    }

    /// Fills the zones with this many objects. Returns whether there was room.
    pub fn fill(&mut self, objects: u64) -> bool {
        (0..objects).all(|_| self.write(Stream::New).is_some())
    }

    /// Overwrites this many random objects and cleans in between and at the end, in no virtual time, so that the
    /// zones reach a steady state.
    pub fn overwrite(
        &mut self,
        objects: u64,
        (policy, free): (&dyn CleaningPolicy, Watermarks),
        random: &mut fastrand::Rng,
    ) {
        for n in 0..=objects {
            while let Some(pressure) = match self.has_room() {
                true => free.pressure(self.free(), self.zones()),
                false => Some(Pressure::Any),
            } {
                if !self.begin(policy, pressure) {
                    break;
                }
                while self.move_one().is_some() {}
                self.reset();
            }
            if n < objects {
                self.kill(random);
                self.write(Stream::New);
            }
        }
    }

    /// Overwrites without cleaning until only `free` zones are free, as on a drive that waits for its turn.
    pub fn use_up(&mut self, free: u32, random: &mut fastrand::Rng) {
        while self.free() > free && self.all_live > 0 {
            self.kill(random);
            if self.write(Stream::New).is_none() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::closed_form;
    use zone_alloc::Greedy;

    #[test]
    fn counted_objects_cost_what_the_closed_form_says() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut zones = ZoneSlots::new(400, 64);
        let objects = 400 * 64 * 8 / 10;
        let free = "1..1".parse().unwrap();
        assert!(zones.fill(objects));
        zones.overwrite(6 * objects, (&Greedy, free), &mut random);
        let before = zones.now;
        let writes = 10 * objects;
        for _ in 0..writes {
            zones.kill(&mut random);
            while !zones.has_room() && zones.begin(&Greedy, Pressure::Any) {
                while zones.move_one().is_some() {}
                zones.reset();
            }
            assert!(zones.write(Stream::New).is_some());
        }
        let cost = (zones.now - before) as f64 / writes as f64;
        let theory = closed_form::greedy(0.8, 64);
        assert!((cost / theory - 1.0).abs() < 0.05, "{cost} for {theory}");
        assert_eq!(zones.live(), objects);
    }

    #[test]
    fn a_full_drive_says_so() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut zones = ZoneSlots::new(4, 8);
        assert!(!zones.fill(60));
        assert!(!zones.has_room() && !zones.has_dead());
        zones.kill(&mut random);
        assert!(zones.has_dead());
    }
}
