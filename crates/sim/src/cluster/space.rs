//! The objects of a drive: where they lie, and how many are live.

use super::scenario::Layout;
use super::slots::Slots;
use super::zone_slots::{Slot, Stream, ZoneSlots};
use zone_alloc::{CleaningPolicy, Pressure};

/// Overwrites of all objects in which the zones reach a steady state.
const OVERWRITES: u64 = 4;

/// The places of objects, in the detail that the drive's timing needs.
#[derive(Clone, Debug)]
pub enum Places {
    /// Not tracked, as the timing does not depend on them.
    Anywhere,
    /// On a drive that takes any write.
    Blocks(Slots),
    /// On a drive with zones.
    Zones(ZoneSlots),
}

/// The data of a drive. Places are byte offsets from its beginning.
#[derive(Clone, Debug)]
pub struct Space {
    places: Places,
    part_bytes: u64,
    zone_bytes: u64,
}

impl Space {
    /// An empty drive; `exact` if the timing depends on where objects lie.
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

    /// Its zones, to be changed.
    pub const fn zones_mut(&mut self) -> Option<&mut ZoneSlots> {
        match &mut self.places {
            Places::Zones(zones) => Some(zones),
            _ => None,
        }
    }

    /// Bytes of a zone; 0 on a drive without zones.
    pub const fn zone_bytes(&self) -> u64 {
        self.zone_bytes
    }

    /// The byte where a slot begins.
    pub fn byte(&self, slot: Slot) -> u64 {
        u64::from(slot.zone) * self.zone_bytes + u64::from(slot.number) * self.part_bytes
    }

    /// The place of a new object; `None` if it has to wait for room.
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

    /// The place of a live object, drawn at random.
    pub fn read(&self, random: &mut fastrand::Rng) -> u64 {
        match &self.places {
            Places::Anywhere => 0,
            Places::Blocks(slots) => slots.any_live(random).unwrap_or(0) * self.part_bytes,
            Places::Zones(zones) => zones.any_live(random).map_or(0, |slot| self.byte(slot)),
        }
    }

    /// Makes a live object dead, drawn at random.
    pub fn kill(&mut self, random: &mut fastrand::Rng) {
        match &mut self.places {
            Places::Anywhere => {}
            Places::Blocks(slots) => slots.kill(random),
            Places::Zones(zones) => zones.kill(random),
        }
    }

    /// Live objects; 0 if places are not tracked.
    pub const fn live(&self) -> u64 {
        match &self.places {
            Places::Anywhere => 0,
            Places::Blocks(slots) => slots.live(),
            Places::Zones(zones) => zones.live(),
        }
    }

    /// Fills the drive with the live data of the layout, and ages it. Returns whether there was room.
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
                // Each slot is written once; then objects die until only the live ones are left, with holes in
                // between.
                while slots.write().is_some() {}
                while slots.live() > objects {
                    slots.kill(random);
                }
                true
            }
            _ => true,
        }
    }

    /// The written ranges, one for each zone: first byte and length in bytes.
    pub fn written(&self) -> Vec<(u64, u64)> {
        let zones = self.zones().map_or(&[][..], ZoneSlots::written);
        let all = (0..).zip(zones).filter(|(_, slots)| **slots > 0);
        all.map(|(zone, slots)| (zone * self.zone_bytes, u64::from(*slots) * self.part_bytes))
            .collect()
    }

    /// Begins to clean a zone, if one is worth it. Returns whether one is being cleaned.
    pub fn begin(&mut self, policy: &dyn CleaningPolicy, pressure: Pressure) -> bool {
        self.zones_mut()
            .is_some_and(|zones| zones.begin(policy, pressure))
    }
}
