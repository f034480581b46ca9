//! All metadata in memory. [`State::apply`] is the only way to change it. A record that does not fit is damage if it
//! was read from the drive, and a bug if an operation made it.

use crate::inode::{Attributes, Content, Directory, Entry, Inode, ROOT};
use crate::map::{Changes, Extent, MAX_EXTENT, Map, Place, Preallocated};
use crate::record::Record;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Size limit of a file on any drive, in bytes: block numbers stay far from overflow.
pub const MAX_SIZE: u64 = 1 << 62;
/// Bytes of an inode in a checkpoint, with its share of a frame header.
const INODE_BYTES: u64 = 93;
/// Bytes of a name's record without the name.
const NAME_BYTES: u64 = 21;
/// Bytes of an extent's record without its checksums.
const EXTENT_BYTES: u64 = 29;
/// Bytes of a record of preallocated blocks.
const PREALLOCATE_BYTES: u64 = 25;
/// Bytes of an extended attribute's record without name and value, or of a target's record without the target.
const BYTES: u64 = 17;

/// The blocks of a file at a place in a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owner {
    /// The file's inode.
    pub ino: u64,
    /// The first block in the file.
    pub block: u64,
    /// Number of blocks.
    pub blocks: u32,
}

/// The extents in a zone.
#[derive(Clone, Default, Debug)]
pub struct Holding {
    /// Number of live blocks.
    pub live: u64,
    /// Extents by their first block in the zone; they do not overlap.
    pub owners: BTreeMap<u32, Owner>,
}

/// Blocks and zones that no file has any more.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Freed {
    /// Zones that lost their last live block.
    pub zones: Vec<u32>,
    /// Places of freed blocks in order, each block once.
    pub places: Vec<Place>,
}

/// Bounds of extents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The first zone for data, by the drive's number.
    pub first_zone: u32,
    /// Number of zones for data.
    pub zones: u32,
    /// Number of blocks in a zone.
    pub zone_blocks: u32,
    /// Most blocks of a file.
    pub file_blocks: u64,
}

/// All inodes, and the extents in each zone.
#[derive(Clone, Debug)]
pub struct State {
    bounds: Bounds,
    inodes: BTreeMap<u64, Inode>,
    holdings: Vec<Holding>,
    next: u64,
    cookie: u64,
    live: u64,
    /// Number of preallocated blocks.
    preallocated: u64,
    /// Bytes of all records in a checkpoint.
    bytes: u64,
    /// Places of removed extents since the last [`State::take_freed`]; a later extent may have made some of them live
    /// again.
    removed: Vec<Place>,
    /// Inodes without a name.
    orphans: BTreeSet<u64>,
}

/// Why a record does not fit the state.
pub type Misfit = &'static str;

impl State {
    /// A state without any inode.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            inodes: BTreeMap::new(),
            holdings: vec![Holding::default(); bounds.zones as usize],
            next: ROOT + 1,
            // 0 is the beginning of a listing, 1 and 2 are "." and "..".
            cookie: 3,
            live: 0,
            preallocated: 0,
            bytes: 0,
            removed: Vec::new(),
            orphans: BTreeSet::new(),
        }
    }

    /// Bounds of extents.
    pub const fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// An inode.
    pub fn inode(&self, ino: u64) -> Option<&Inode> {
        self.inodes.get(&ino)
    }

    /// All inodes in order.
    pub fn inodes(&self) -> impl Iterator<Item = &Inode> {
        self.inodes.values()
    }

    /// Number of inodes.
    pub fn count(&self) -> u64 {
        self.inodes.len() as u64
    }

    /// The extents in a zone for data; `None` for other zones.
    pub fn holding(&self, zone: u32) -> Option<&Holding> {
        let index = zone.checked_sub(self.bounds.first_zone)?;
        self.holdings.get(index as usize)
    }

    /// The number of the next new inode.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Number of blocks in extents of all files.
    pub const fn live(&self) -> u64 {
        self.live
    }

    /// Number of preallocated blocks of all files.
    pub const fn preallocated(&self) -> u64 {
        self.preallocated
    }

    /// The oldest format version that has all records of this state.
    pub const fn version(&self) -> u16 {
        if self.preallocated > 0 { 2 } else { 1 }
    }

    /// Least bytes of a checkpoint's records.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Inodes without a name.
    pub const fn orphans(&self) -> &BTreeSet<u64> {
        &self.orphans
    }

    /// The blocks and zones freed since the last call, except those that are live again.
    pub fn take_freed(&mut self) -> Freed {
        let mut removed = std::mem::take(&mut self.removed);
        removed.sort_unstable_by_key(|place| (place.zone, place.offset));
        let mut freed = Freed::default();
        let mut done = (0, 0);
        for place in removed {
            let Some(holding) = self.holding(place.zone) else {
                continue;
            };
            if holding.live == 0 && freed.zones.last() != Some(&place.zone) {
                freed.zones.push(place.zone);
            }
            if done.0 != place.zone {
                done = (place.zone, 0);
            }
            let end = place.offset + place.blocks;
            let mut at = place.offset.max(done.1);
            done.1 = done.1.max(end);
            while at < end {
                let before = holding.owners.range(..=at).next_back();
                if let Some((start, owner)) = before
                    && start + owner.blocks > at
                {
                    at = start + owner.blocks;
                    continue;
                }
                let next = holding.owners.range(at..end).next();
                let to = next.map_or(end, |(start, _)| *start);
                freed.places.push(Place {
                    zone: place.zone,
                    offset: at,
                    blocks: to - at,
                });
                at = to;
            }
        }
        freed
    }

    /// Applies a record, wholly or not at all.
    pub fn apply(&mut self, record: &Record) -> Result<(), Misfit> {
        match record {
            Record::Inode(attributes) => self.set(*attributes),
            Record::Remove { ino } => self.remove(*ino),
            Record::Name { dir, name, ino } => self.name(*dir, name, *ino),
            Record::Unname { dir, name } => self.unname(*dir, name),
            Record::Extent {
                ino,
                block,
                zone,
                offset,
                sums,
            } => self.extent(*ino, *block, *zone, *offset, sums),
            Record::Hole { ino, from, to } => self.change(*ino, |map| map.cut(*from, *to)),
            Record::Preallocate { ino, from, to } => {
                let most = u64::from(self.bounds.zones) * u64::from(self.bounds.zone_blocks);
                let holes = self.map(*ino)?.bare_holes(*from, *to);
                let mut added = holes.iter().map(|(from, to)| to - from);
                let total = added.try_fold(self.preallocated, |sum, more| sum.checked_add(more));
                if *to > self.bounds.file_blocks || total.is_none_or(|total| total > most) {
                    return Err("more space is set aside than there is");
                }
                self.change(*ino, |map| {
                    map.preallocate(*from, *to);
                    Changes::default()
                })
            }
            Record::Xattr { ino, name, value } => {
                let cost = BYTES + (name.len() + value.len()) as u64;
                let old = self.get(*ino)?.xattrs.insert(name.clone(), value.clone());
                self.bytes += cost;
                self.bytes -= old.map_or(0, |old| BYTES + (name.len() + old.len()) as u64);
                Ok(())
            }
            Record::NoXattr { ino, name } => {
                let old = self.get(*ino)?.xattrs.remove(name);
                let old = old.ok_or("an attribute that is not there is removed")?;
                self.bytes -= BYTES + (name.len() + old.len()) as u64;
                Ok(())
            }
            Record::Target { ino, target } => {
                let Content::Link(old) = &mut self.get(*ino)?.content else {
                    return Err("a target of what is no link");
                };
                let old = std::mem::replace(old, target.clone());
                self.bytes += target.len() as u64;
                self.bytes -= old.len() as u64;
                Ok(())
            }
            Record::Next { ino } => {
                self.next = self.next.max(*ino);
                Ok(())
            }
            Record::Moved { .. } => Ok(()),
        }
    }

    /// Passes records of the whole state to `each`, in an order in which they can be applied to an empty state.
    pub fn records<E>(&self, mut each: impl FnMut(&Record) -> Result<(), E>) -> Result<(), E> {
        each(&Record::Next { ino: self.next })?;
        for inode in self.inodes.values() {
            let ino = inode.attributes.ino;
            each(&Record::Inode(inode.attributes))?;
            for (name, value) in &inode.xattrs {
                let (name, value) = (name.clone(), value.clone());
                each(&Record::Xattr { ino, name, value })?;
            }
            match &inode.content {
                Content::File(map) => {
                    for (block, extent) in map.iter() {
                        each(&Record::Extent {
                            ino,
                            block,
                            zone: extent.zone,
                            offset: extent.offset,
                            sums: extent.sums.as_slice().into(),
                        })?;
                    }
                    for (from, to) in map.preallocated() {
                        each(&Record::Preallocate { ino, from, to })?;
                    }
                }
                Content::Link(target) => each(&Record::Target {
                    ino,
                    target: target.clone(),
                })?,
                Content::Directory(_) | Content::Nothing => {}
            }
        }
        for inode in self.inodes.values() {
            if let Content::Directory(directory) = &inode.content {
                for (name, entry) in &directory.entries {
                    each(&Record::Name {
                        dir: inode.attributes.ino,
                        name: Box::from(&**name),
                        ino: entry.ino,
                    })?;
                }
            }
        }
        Ok(())
    }

    fn get(&mut self, ino: u64) -> Result<&mut Inode, Misfit> {
        self.inodes.get_mut(&ino).ok_or("there is no such inode")
    }

    fn map(&mut self, ino: u64) -> Result<&mut Map, Misfit> {
        match &mut self.get(ino)?.content {
            Content::File(map) => Ok(map),
            _ => Err("blocks of what is no file"),
        }
    }

    fn directory(&mut self, ino: u64) -> Result<&mut Directory, Misfit> {
        match &mut self.get(ino)?.content {
            Content::Directory(directory) => Ok(directory),
            _ => Err("a name in what is no directory"),
        }
    }

    fn set(&mut self, attributes: Attributes) -> Result<(), Misfit> {
        let ino = attributes.ino;
        if ino == 0 || ino == u64::MAX {
            return Err("the number of an inode cannot be");
        }
        if attributes.size > MAX_SIZE {
            return Err("a file larger than any can be");
        }
        if let Some(inode) = self.inodes.get_mut(&ino) {
            if inode.attributes.kind() != attributes.kind() {
                return Err("an inode becomes another kind");
            }
            inode.attributes = attributes;
        } else {
            let inode = Inode::new(attributes).ok_or("an inode of no known kind")?;
            self.bytes += INODE_BYTES;
            if let Content::Link(_) = inode.content {
                self.bytes += BYTES;
            }
            self.inodes.insert(ino, inode);
        }
        self.next = self.next.max(ino + 1);
        if attributes.nlink == 0 {
            self.orphans.insert(ino);
        } else {
            self.orphans.remove(&ino);
        }
        Ok(())
    }

    fn remove(&mut self, ino: u64) -> Result<(), Misfit> {
        if let Content::Directory(directory) = &self.get(ino)?.content
            && !directory.entries.is_empty()
        {
            return Err("a directory with entries is removed");
        }
        let Some(mut inode) = self.inodes.remove(&ino) else {
            return Err("there is no such inode");
        };
        self.orphans.remove(&ino);
        self.bytes -= INODE_BYTES;
        for (name, value) in &inode.xattrs {
            self.bytes -= BYTES + (name.len() + value.len()) as u64;
        }
        match &mut inode.content {
            Content::File(map) => {
                self.count_preallocated(map.preallocated_size(), Preallocated::default());
                let changes = map.clear();
                self.follow(ino, &changes);
            }
            Content::Link(target) => self.bytes -= BYTES + target.len() as u64,
            Content::Directory(_) | Content::Nothing => {}
        }
        Ok(())
    }

    fn name(&mut self, dir: u64, name: &[u8], ino: u64) -> Result<(), Misfit> {
        if name.is_empty() || name.len() > 255 {
            return Err("a name of no or more than 255 bytes");
        }
        let cookie = self.cookie;
        self.directory(dir)?;
        if let Content::Directory(child) = &mut self.get(ino)?.content {
            child.parent = dir;
        }
        let directory = self.directory(dir)?;
        let name: Arc<[u8]> = name.into();
        directory.order.insert(cookie, Arc::clone(&name));
        let length = name.len() as u64;
        let old = directory.entries.insert(name, Entry { ino, cookie });
        if let Some(old) = old {
            directory.order.remove(&old.cookie);
        } else {
            self.bytes += NAME_BYTES + length;
        }
        self.cookie += 1;
        Ok(())
    }

    fn unname(&mut self, dir: u64, name: &[u8]) -> Result<(), Misfit> {
        let directory = self.directory(dir)?;
        let old = directory.entries.remove(name);
        let old = old.ok_or("a name that is not there is removed")?;
        directory.order.remove(&old.cookie);
        self.bytes -= NAME_BYTES + name.len() as u64;
        Ok(())
    }

    fn extent(
        &mut self,
        ino: u64,
        block: u64,
        zone: u32,
        offset: u32,
        sums: &[u32],
    ) -> Result<(), Misfit> {
        if sums.is_empty() || sums.len() > MAX_EXTENT {
            return Err("an extent of no or too many blocks");
        }
        let blocks = sums.len() as u32;
        let end = block.checked_add(blocks.into());
        if end.is_none_or(|end| end > self.bounds.file_blocks) {
            return Err("an extent behind the end of every file");
        }
        let end = offset.checked_add(blocks);
        if end.is_none_or(|end| end > self.bounds.zone_blocks) {
            return Err("an extent behind the end of its zone");
        }
        let holding = self.holding(zone).ok_or("an extent in no zone for data")?;
        let before = holding.owners.range(..offset + blocks).next_back();
        if before.is_some_and(|(start, owner)| start + owner.blocks > offset) {
            return Err("two extents lie in one place");
        }
        let sums = sums.to_vec();
        let extent = Extent { zone, offset, sums };
        self.change(ino, |map| map.put(block, extent))
    }

    /// Changes a file's map, and updates the counters and the extents of zones accordingly.
    fn change(&mut self, ino: u64, how: impl FnOnce(&mut Map) -> Changes) -> Result<(), Misfit> {
        let map = self.map(ino)?;
        let before = map.preallocated_size();
        let changes = how(map);
        let after = map.preallocated_size();
        self.count_preallocated(before, after);
        self.follow(ino, &changes);
        Ok(())
    }

    fn count_preallocated(&mut self, before: Preallocated, after: Preallocated) {
        self.preallocated = self.preallocated + after.blocks - before.blocks;
        self.bytes =
            self.bytes + after.ranges * PREALLOCATE_BYTES - before.ranges * PREALLOCATE_BYTES;
    }

    /// Updates the extents of zones after a change of a map.
    fn follow(&mut self, ino: u64, changes: &Changes) {
        let cost = |place: &Place| EXTENT_BYTES + 4 * u64::from(place.blocks);
        for place in &changes.removed {
            self.bytes -= cost(place);
            self.live -= u64::from(place.blocks);
            let holding = &mut self.holdings[(place.zone - self.bounds.first_zone) as usize];
            holding.owners.remove(&place.offset);
            holding.live -= u64::from(place.blocks);
        }
        self.removed.extend_from_slice(&changes.removed);
        for (block, place) in &changes.added {
            self.bytes += cost(place);
            self.live += u64::from(place.blocks);
            let holding = &mut self.holdings[(place.zone - self.bounds.first_zone) as usize];
            let owner = Owner {
                ino,
                block: *block,
                blocks: place.blocks,
            };
            holding.owners.insert(place.offset, owner);
            holding.live += u64::from(place.blocks);
        }
    }
}
