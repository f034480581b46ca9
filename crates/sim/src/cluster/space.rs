//! Where objects lie on a drive.

use super::scenario::Layout;
use super::slots::Slots;
use super::zone_slots::{Slot, Stream, ZoneSlots};
use zone_alloc::{CleaningPolicy, Pressure};

/// Overwrites of everything in which the zones become as they stay.
const OVERWRITES: u64 = 4;

/// Which objects are where, as far as it matters.
#[derive(Clone, Debug)]
pub enum Places {
    /// It does not.
    Anywhere,
    /// On a drive that takes any write.
    Blocks(Slots),
    /// On a drive with zones.
    Zones(ZoneSlots),
}

/// The data of a drive. Places are bytes from its beginning.
#[derive(Clone, Debug)]
pub struct Space {
    places: Places,
    part_bytes: u64,
    zone_bytes: u64,
}

impl Space {
    /// An empty drive; `exact` if it matters where objects lie.
    pub fn new(layout: &Layout, part_bytes: u64, exact: bool) -> Self {
        let (places, zone_bytes) = match layout {
            Layout::Zones {
                zones, zone_bytes, ..
            } => {
                let slots = (zone_bytes / part_bytes) as u32;
                (Places::Zones(ZoneSlots::new(*zones, slots)), *zone_bytes)
            }
            Layout::Blocks { bytes, .. } if exact => {
                (Places::Blocks(Slots::new(bytes / part_bytes)), 0)
            }
            Layout::Blocks { .. } => (Places::Anywhere, 0),
        };
        Self {
            places,
            part_bytes,
            zone_bytes,
        }
    }

    /// Its zones, if it has any.
    pub const fn zones(&self) -> Option<&ZoneSlots> {
        match &self.places {
            Places::Zones(zones) => Some(zones),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub const fn zones_mut(&mut self) -> Option<&mut ZoneSlots> {
        match &mut self.places {
            Places::Zones(zones) => Some(zones),
            _ => None,
        }
    }

    /// Bytes of a zone; 0 without.
    pub const fn zone_bytes(&self) -> u64 {
        self.zone_bytes
    }

    /// The byte where a slot begins.
    pub fn byte(&self, slot: Slot) -> u64 {
        u64::from(slot.zone) * self.zone_bytes + u64::from(slot.number) * self.part_bytes
    }

    /// A place for a new object; `None` if it has to wait for one.
    pub fn write(&mut self) -> Option<u64> {
        match &mut self.places {
            Places::Anywhere => Some(0),
            Places::Blocks(slots) => slots.write().map(|slot| slot * self.part_bytes),
            Places::Zones(zones) => {
                let slot = zones.write(Stream::New)?;
                Some(self.byte(slot))
            }
        }
    }

    /// Where a live object lies, any of them.
    pub fn read(&self, random: &mut fastrand::Rng) -> u64 {
        match &self.places {
            Places::Anywhere => 0,
            Places::Blocks(slots) => slots.any_live(random).unwrap_or(0) * self.part_bytes,
            Places::Zones(zones) => zones.any_live(random).map_or(0, |slot| self.byte(slot)),
        }
    }

    /// Any live object is dead from now on.
    pub fn kill(&mut self, random: &mut fastrand::Rng) {
        match &mut self.places {
            Places::Anywhere => {}
            Places::Blocks(slots) => slots.kill(random),
            Places::Zones(zones) => zones.kill(random),
        }
    }

    /// Live objects; 0 where nobody counts them.
    pub const fn live(&self) -> u64 {
        match &self.places {
            Places::Anywhere => 0,
            Places::Blocks(slots) => slots.live(),
            Places::Zones(zones) => zones.live(),
        }
    }

    /// Fills it as the layout says. False if there is no room.
    pub fn fill(
        &mut self,
        layout: &Layout,
        policy: &dyn CleaningPolicy,
        random: &mut fastrand::Rng,
    ) -> bool {
        let objects = (layout.live_bytes() / self.part_bytes as f64) as u64;
        match (&mut self.places, layout) {
            (Places::Zones(zones), Layout::Zones { free_zones, .. }) => {
                let is_filled = zones.fill(objects);
                zones.overwrite(OVERWRITES * objects, (policy, *free_zones), random);
                is_filled
            }
            (Places::Blocks(slots), _) => {
                // Once round, and holes where what is dead was.
                while slots.write().is_some() {}
                while slots.live() > objects {
                    slots.kill(random);
                }
                true
            }
            _ => true,
        }
    }

    /// What has been written of each zone: from which byte on, and how much.
    pub fn written(&self) -> Vec<(u64, u64)> {
        let zones = self.zones().map_or(&[][..], ZoneSlots::written);
        let all = (0..).zip(zones).filter(|(_, slots)| **slots > 0);
        all.map(|(zone, slots)| (zone * self.zone_bytes, u64::from(*slots) * self.part_bytes))
            .collect()
    }

    /// Begins to clean a zone, if one is worth it; whether one is being cleaned.
    pub fn begin(&mut self, policy: &dyn CleaningPolicy, pressure: Pressure) -> bool {
        self.zones_mut()
            .is_some_and(|zones| zones.begin(policy, pressure))
    }
}
