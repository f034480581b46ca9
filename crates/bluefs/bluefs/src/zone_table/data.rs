//! Steps of zones with data: extents are added and removed, and writers enter and leave.

use super::stage::{Content, Opened, Stage};
use super::table::ZoneTable;
use crate::Result;
use crate::format::operation::JournalOperation;
use crate::slot::Slot;
use std::sync::Arc;
use zone::ZoneId;

impl ZoneTable {
    /// At mount: adds an extent or segment of a file, with its blocks.
    pub fn claim_data(&mut self, zone: ZoneId, inode: u64, blocks: u32) -> Result<()> {
        if let Stage::Foreign = self.stage(zone) {
            self.set(zone, Stage::Holding(Content::default()));
        }
        self.add(zone, inode, 1, blocks)
    }

    fn content(&mut self, zone: ZoneId) -> Option<&mut Content> {
        match self.stages.get_mut(zone.index())? {
            Stage::Open(opened) => Some(&mut opened.content),
            Stage::Holding(content) => Some(content),
            _ => None,
        }
    }

    /// Adds extents and blocks of a file to a zone's live data.
    pub fn add(&mut self, zone: ZoneId, inode: u64, extents: u32, blocks: u32) -> Result<()> {
        let Some(content) = self.content(zone) else {
            return self.refused(zone, "written to");
        };
        content.live_blocks = content.live_blocks.saturating_add(blocks);
        self.live_blocks += u64::from(blocks);
        self.files.add(zone, inode, extents);
        Ok(())
    }

    /// Subtracts extents and blocks of a file. If the zone has no extents left, it is freed; the operation for that is
    /// recorded in `batch`.
    pub fn remove(
        &mut self,
        zone: ZoneId,
        inode: u64,
        extents: u32,
        blocks: u32,
        batch: u64,
    ) -> Result<()> {
        let left = self
            .content(zone)
            .and_then(|content| content.live_blocks.checked_sub(blocks));
        let (Some(left), true) = (left, self.files.remove(zone, inode, extents)) else {
            return self.refused(zone, "relieved of so much");
        };
        if let Some(content) = self.content(zone) {
            content.live_blocks = left;
        }
        self.live_blocks -= u64::from(blocks);
        self.settle(zone, batch);
        Ok(())
    }

    /// Marks a zone from which something cannot be read or moved, so that it is not cleaned.
    pub fn set_stuck(&mut self, zone: ZoneId) {
        if let Some(content) = self.content(zone) {
            content.stuck = true;
        }
    }

    /// At mount: opens a zone with data for further appends.
    pub fn reopen(&mut self, slot: Arc<Slot>) -> Result<()> {
        self.step(slot.zone, "opened again", |stage| match stage {
            Stage::Holding(content) => Some(Stage::Open(Opened::new(slot, 0, *content))),
            _ => None,
        })
        .map(drop)
    }

    fn opened_mut(&mut self, zone: ZoneId) -> Option<&mut Opened> {
        match self.stages.get_mut(zone.index())? {
            Stage::Open(opened) => Some(opened),
            _ => None,
        }
    }

    fn held(&mut self, slot: &Arc<Slot>) -> Option<&mut Opened> {
        let opened = self.opened_mut(slot.zone)?;
        (Arc::ptr_eq(&opened.slot, slot) && opened.writers > 0).then_some(opened)
    }

    /// Adds a writer to an open zone.
    pub fn enter(&mut self, zone: ZoneId) -> Result<Arc<Slot>> {
        match self.opened_mut(zone) {
            Some(opened) => {
                opened.writers += 1;
                Ok(opened.slot.clone())
            }
            None => self.refused(zone, "entered"),
        }
    }

    /// Replaces the slot `old` of an open zone by `slot`, if the zone has exactly `writers` writers; otherwise false.
    pub fn renew(&mut self, old: &Arc<Slot>, writers: u32, slot: Arc<Slot>) -> bool {
        match self.opened_mut(old.zone) {
            Some(opened) if Arc::ptr_eq(&opened.slot, old) && opened.writers == writers => {
                (opened.slot, opened.told) = (slot, 0);
                true
            }
            _ => false,
        }
    }

    /// Removes a writer from an open zone. Returns the written end of its log records, if that is to be recorded.
    pub fn release(&mut self, slot: &Arc<Slot>, batch: u64) -> Result<Option<JournalOperation>> {
        let Some(opened) = self.held(slot) else {
            return self.refused(slot.zone, "released");
        };
        opened.writers -= 1;
        let news = opened.news();
        self.settle(slot.zone, batch);
        Ok(news)
    }

    /// Returns a zone that the drive refused to open; nothing has been written to it.
    pub fn return_unused(&mut self, slot: &Arc<Slot>) -> Result<()> {
        let Some(opened) = self.held(slot).filter(|o| o.slot.used() == 0) else {
            return self.refused(slot.zone, "returned unused");
        };
        opened.writers -= 1;
        if opened.writers == 0 {
            self.set(slot.zone, Stage::Ready { after: 0 });
        }
        Ok(())
    }

    /// The written ends of log records in all open zones that are not recorded yet.
    pub fn news(&mut self) -> Vec<JournalOperation> {
        let open = self.open.clone().into_iter();
        open.filter_map(|zone| self.opened_mut(zone).and_then(Opened::news))
            .collect()
    }

    /// After a change, a zone without writers is closed if it is full, and freed if it has no extents. A zone that was
    /// never written to stays open.
    fn settle(&mut self, zone: ZoneId, batch: u64) {
        let (content, used, capacity) = match self.stage(zone) {
            Stage::Holding(content) => (*content, u64::MAX, 0),
            Stage::Open(o) if o.writers == 0 => (o.content, o.slot.used(), o.slot.capacity),
            _ => return,
        };
        if self.files_in(zone).next().is_none() && used > 0 {
            let active = used < capacity && self.is_sequential(zone);
            self.set(zone, Stage::Freed { batch, active });
        } else if used >= capacity {
            self.set(zone, Stage::Holding(content));
        }
    }
}
