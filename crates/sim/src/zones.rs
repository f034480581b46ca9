//! Zones of blocks, and the map from a device's blocks to the places in zones where they are live.

use zone::ZoneId;
use zone_alloc::Candidate;

/// Marks a place without a block, a block without a place, and a zone that is not full.
const NOWHERE: u32 = u32::MAX;

/// All zones of a drive, empty at first, and the blocks of the device that lies on them.
pub struct Zones {
    blocks_per_zone: u32,
    /// For each place, which block was written there.
    blocks: Vec<u32>,
    /// For each block, its place.
    places: Vec<u32>,
    /// Full zones, in no order.
    full: Vec<Candidate>,
    /// For each zone, where it is in `full`; [`NOWHERE`] if it is not.
    index: Vec<u32>,
    /// Live blocks by zone.
    live: Vec<u32>,
    /// By zone, the stream that filled it and when it was opened.
    origin: Vec<(usize, u64)>,
    free: Vec<u32>,
    /// For each stream, its open zone and the blocks in it.
    open: Vec<Option<(u32, u32)>>,
    /// Blocks written so far: the clock of the zones' ages.
    now: u64,
}

impl Zones {
    pub fn new(zones: u32, blocks_per_zone: u32, blocks: u32, streams: usize) -> Self {
        Self {
            blocks_per_zone,
            blocks: vec![NOWHERE; (zones * blocks_per_zone) as usize],
            places: vec![NOWHERE; blocks as usize],
            full: Vec::new(),
            index: vec![NOWHERE; zones as usize],
            live: vec![0; zones as usize],
            origin: vec![(0, 0); zones as usize],
            free: (0..zones).rev().collect(),
            open: vec![None; streams],
            now: 0,
        }
    }

    pub fn free(&self) -> usize {
        self.free.len()
    }

    pub fn full(&self) -> &[Candidate] {
        &self.full
    }

    pub const fn now(&self) -> u64 {
        self.now
    }

    /// Whether the next block in `stream` takes another zone.
    pub fn needs_a_zone(&self, stream: usize) -> bool {
        self.open[stream].is_none()
    }

    /// The stream that filled a zone, and when it was opened.
    pub fn origin(&self, zone: ZoneId) -> (usize, u64) {
        self.origin[zone.index()]
    }

    /// Appends `block` to the open zone of `stream`; its old copy is dead from now on. A zone that is opened for it
    /// records `now`. False if a zone is needed and none is free.
    pub fn write(&mut self, block: u32, stream: usize, now: u64) -> bool {
        let Some((zone, written)) = self.open[stream].or_else(|| Some((self.free.pop()?, 0)))
        else {
            return false;
        };
        if written == 0 {
            self.origin[zone as usize] = (stream, now);
        }
        self.forget(block);
        let place = zone * self.blocks_per_zone + written;
        self.blocks[place as usize] = block;
        self.places[block as usize] = place;
        self.live[zone as usize] += 1;
        self.now += 1;
        self.open[stream] = Some((zone, written + 1));
        if written + 1 == self.blocks_per_zone {
            self.open[stream] = None;
            self.index[zone as usize] = self.full.len() as u32;
            self.full.push(Candidate {
                zone: ZoneId(zone),
                live: u64::from(self.live[zone as usize]),
                written: u64::from(self.blocks_per_zone),
                filled_at: self.now,
            });
        }
        true
    }

    fn forget(&mut self, block: u32) {
        let place = std::mem::replace(&mut self.places[block as usize], NOWHERE);
        if place == NOWHERE {
            return;
        }
        let zone = (place / self.blocks_per_zone) as usize;
        self.live[zone] -= 1;
        if let Some(full) = self.full.get_mut(self.index[zone] as usize) {
            full.live -= 1;
        }
    }

    /// Takes a full zone out of [`Self::full`], and returns its live blocks.
    pub fn empty(&mut self, zone: ZoneId) -> Vec<u32> {
        let index = std::mem::replace(&mut self.index[zone.index()], NOWHERE) as usize;
        self.full.swap_remove(index);
        if let Some(moved) = self.full.get(index) {
            self.index[moved.zone.index()] = index as u32;
        }
        let first = zone.0 * self.blocks_per_zone;
        let places = first..first + self.blocks_per_zone;
        let live = places.filter_map(|place| {
            let block = self.blocks[place as usize];
            (self.places[block as usize] == place).then_some(block)
        });
        live.collect()
    }

    /// Makes a zone without live blocks free.
    pub fn reset(&mut self, zone: ZoneId) {
        debug_assert_eq!(self.live[zone.index()], 0, "a reset would lose blocks");
        self.free.push(zone.0);
    }
}
