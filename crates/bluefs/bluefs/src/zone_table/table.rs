//! The stages of all zones of a drive, with counts and indexes of them.

use super::files::Files;
use super::stage::{Content, Opened, Stage};
use crate::{Error, Result};
use std::collections::BTreeSet;
use zone::{Geometry, ZoneId, ZoneKind};

/// The stages of all zones of the drive, 16 bytes each, and the files in them.
#[derive(Debug)]
pub(crate) struct ZoneTable {
    geometry: Geometry,
    pub(super) stages: Vec<Stage>,
    /// Number of zones with data, open ones included.
    data: u32,
    pub(super) live_blocks: u64,
    pub(super) files: Files,
    /// Zones for which [`Stage::is_passing`] holds: taken, ready, freed, being reset or leaving, or to be reset again.
    passing: BTreeSet<ZoneId>,
    /// Open zones, in the order of [`Self::opened`].
    pub(super) open: Vec<ZoneId>,
    /// The last batch in which a zone was freed.
    freed_in: u64,
}

impl ZoneTable {
    pub fn new(geometry: Geometry) -> Self {
        Self {
            stages: geometry.zones().map(|_| Stage::Foreign).collect(),
            geometry,
            data: 0,
            live_blocks: 0,
            files: Files::default(),
            passing: BTreeSet::new(),
            open: Vec::new(),
            freed_in: 0,
        }
    }

    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Number of zones with data, open ones included.
    pub fn data_zones(&self) -> u32 {
        self.data
    }

    /// Number of zones that wait for a step and whose stage `of` selects.
    pub fn count(&self, of: impl Fn(&Stage) -> bool) -> u32 {
        self.passing().filter(|(_, stage)| of(stage)).count() as u32
    }

    /// Blocks of all extents of plain files.
    pub fn live_blocks(&self) -> u64 {
        self.live_blocks
    }

    /// Inodes of the files in a zone, in order, with the number of their extents or segments there.
    pub fn files_in(&self, zone: ZoneId) -> impl Iterator<Item = (u64, u32)> {
        self.files.of_zone(zone)
    }

    pub(super) fn stage(&self, zone: ZoneId) -> &Stage {
        self.stages.get(zone.index()).unwrap_or(&Stage::Foreign)
    }

    /// All zones of the file system.
    pub fn iter(&self) -> impl Iterator<Item = (ZoneId, &Stage)> {
        let zones = self.geometry.zones().zip(&self.stages);
        zones.filter(|(_, stage)| !matches!(stage, Stage::Foreign))
    }

    /// Zones that have data and are not open.
    pub fn holding(&self) -> impl Iterator<Item = (ZoneId, &Content)> {
        self.iter().filter_map(|(zone, stage)| match stage {
            Stage::Holding(content) => Some((zone, content)),
            _ => None,
        })
    }

    /// Whether a zone has data and is not open.
    pub fn is_holding(&self, zone: ZoneId) -> bool {
        matches!(self.stage(zone), Stage::Holding(_))
    }

    /// Open zones in the order in which they were opened, except that the last one takes the place of a closed one.
    pub fn opened(&self) -> impl Iterator<Item = &Opened> {
        self.open.iter().filter_map(|zone| match self.stage(*zone) {
            Stage::Open(opened) => Some(&**opened),
            _ => None,
        })
    }

    pub fn is_foreign(&self, zone: ZoneId) -> bool {
        matches!(self.stage(zone), Stage::Foreign)
    }

    /// Whether a zone is a superblock ring's, the journal's, or its spare zone.
    pub fn is_metadata(&self, zone: ZoneId) -> bool {
        matches!(self.stage(zone), Stage::Metadata)
    }

    pub fn has_data(&self, zone: ZoneId) -> bool {
        self.stage(zone).is_data()
    }

    /// Whether a zone has data and is appended to no more; its last writers may not have released it yet.
    pub fn is_left(&self, zone: ZoneId) -> bool {
        match self.stage(zone) {
            Stage::Open(opened) => opened.slot.used() >= opened.slot.capacity,
            stage => stage.is_data(),
        }
    }

    /// Live data of a zone without writers; `None` if it has writers.
    pub fn settled_content(&self, zone: ZoneId) -> Option<Content> {
        match self.stage(zone) {
            Stage::Holding(content) => Some(*content),
            Stage::Open(opened) if opened.writers == 0 => Some(opened.content),
            Stage::Open(_) => None,
            _ => Some(Content::default()),
        }
    }

    /// Whether a zone was freed by an operation recorded in this batch.
    pub fn has_freed_in(&self, batch: u64) -> bool {
        self.freed_in == batch
    }

    /// The usable ready zone to be opened next, of the preferred kind if there is one. `finished` is the number of the
    /// last finished flush.
    pub fn ready(&self, conventional_first: bool, finished: u64) -> Option<ZoneId> {
        let usable = |(zone, stage): (ZoneId, &Stage)| stage.is_usable(finished).then_some(zone);
        let usable = self.passing().filter_map(usable);
        usable.min_by_key(|zone| self.is_sequential(*zone) == conventional_first)
    }

    /// The ready zone to be given away first: the last one, of the less preferred kind if there is one.
    pub fn least_ready(&self, conventional_first: bool) -> Option<ZoneId> {
        let ready = |(zone, stage): (ZoneId, &Stage)| stage.is_ready().then_some(zone);
        let ready = self.passing().filter_map(ready);
        ready.max_by_key(|zone| (self.is_sequential(*zone) == conventional_first, zone.0))
    }

    pub(super) fn passing(&self) -> impl DoubleEndedIterator<Item = (ZoneId, &Stage)> + Clone {
        self.passing.iter().map(|zone| (*zone, self.stage(*zone)))
    }

    pub(super) fn is_sequential(&self, zone: ZoneId) -> bool {
        self.geometry.kind(zone) != ZoneKind::Conventional
    }

    /// Changes a zone's stage and returns the one before.
    pub(super) fn set(&mut self, zone: ZoneId, next: Stage) -> Stage {
        let Some(stage) = self.stages.get_mut(zone.index()) else {
            return Stage::Foreign;
        };
        self.data -= u32::from(stage.is_data());
        self.data += u32::from(next.is_data());
        match (stage.is_passing(), next.is_passing()) {
            (false, true) => _ = self.passing.insert(zone),
            (true, false) => _ = self.passing.remove(&zone),
            _ => {}
        }
        if let Stage::Open(_) = stage {
            let index = self.open.iter().position(|open| *open == zone);
            index.map(|index| self.open.swap_remove(index));
        }
        if let Stage::Open(_) = next {
            self.open.push(zone);
        }
        if let Stage::Freed { batch, .. } = next {
            self.freed_in = batch;
        }
        std::mem::replace(stage, next)
    }

    /// Takes a step, if `next` allows it for the zone's stage; returns the stage before.
    pub(super) fn step(
        &mut self,
        zone: ZoneId,
        name: &'static str,
        next: impl FnOnce(&Stage) -> Option<Stage>,
    ) -> Result<Stage> {
        match next(self.stage(zone)) {
            Some(stage) => Ok(self.set(zone, stage)),
            None => self.refused(zone, name),
        }
    }

    /// Takes a step with all waiting zones for which `next` allows it, and returns them.
    pub(super) fn pass(&mut self, next: impl Fn(ZoneId, &Stage) -> Option<Stage>) -> Vec<ZoneId> {
        let due = |(zone, stage)| Some((zone, next(zone, stage)?));
        let due: Vec<_> = self.passing().filter_map(due).collect();
        let set = |(zone, stage)| {
            self.set(zone, stage);
            zone
        };
        due.into_iter().map(set).collect()
    }

    pub(super) fn refused<T>(&self, zone: ZoneId, step: &'static str) -> Result<T> {
        let stage = self.stage(zone).name();
        Err(Error::ZoneStage { zone, stage, step })
    }
}
