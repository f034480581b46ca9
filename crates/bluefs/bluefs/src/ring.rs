//! The places of superblocks: two rings of two zones each, at the two ends of the drive, so that the loss of any one
//! zone leaves a current superblock.
//!
//! Every superblock is written to both rings, and one flush covers both. Each ring is in order by itself: its zone is
//! filled block by block; then the other zone is reset and filled, and until it holds a block, the last block of the
//! full zone counts. So after a power cut each ring holds the superblock that was being written or the one before;
//! after the loss of a zone the other ring does.

use crate::format::superblock::{Decoded, ENCODED, Superblock};
use crate::worn_out::WornOut;
use crate::{Error, FORMAT_VERSION, Result};
use appender::{is_of_limit, is_of_zone};
use device::ZonedDevice;
use zone::{
    Geometry, ZoneAddress, ZoneCondition, ZoneDescriptor, ZoneError, ZoneId, ZoneKind, ZoneResult,
};

/// Most superblocks in a sequential zone: resets are rare, and a search is bounded.
const SEQUENTIAL_SLOTS: u64 = 1024;
/// Most superblocks in a conventional zone, which is overwritten and has no write pointer: a mount reads all of them.
const CONVENTIONAL_SLOTS: u64 = 16;
/// Blocks that a search in a sequential zone reads first, from the end: the newest superblock is usually there.
const READ_FIRST: u64 = 4;

/// The zones of both rings: the first two and the last two of the drive.
pub(crate) fn ring_zones(g: &Geometry) -> [[ZoneId; 2]; 2] {
    let last = |back: u32| ZoneId(g.drive_zones().saturating_sub(back));
    [[ZoneId(0), ZoneId(1)], [last(2), last(1)]]
}

/// Whether the drive answers reads at all: tries a superblock zone other than `zone`.
pub(crate) fn reads_beside(device: &dyn ZonedDevice, zone: ZoneId) -> bool {
    let g = device.geometry();
    let mut others = ring_zones(g).concat().into_iter().filter(|z| *z != zone);
    let mut block = vec![0; g.block_size as usize];
    others.any(|other| device.read(g.start(other), &mut block).is_ok())
}

/// Passes on the error of a read in `zone` if the power is lost or the drive answers no reads at all; otherwise that
/// place alone cannot be read.
pub(crate) fn unread(device: &dyn ZonedDevice, zone: ZoneId, error: ZoneError) -> ZoneResult<()> {
    if matches!(error, ZoneError::PowerLost { .. }) || !reads_beside(device, zone) {
        return Err(error);
    }
    Ok(())
}

/// Both rings.
#[derive(Clone, Debug)]
pub(crate) struct Rings([Ring; 2]);

/// State of one ring.
#[derive(Clone, Debug)]
struct Ring {
    zones: [ZoneId; 2],
    /// Index in `zones` of the zone that is being filled.
    current: usize,
    /// Blocks used in that zone.
    used: u64,
    /// The newest superblock in this ring, with the index of its zone and its slot.
    newest: Option<((usize, u64), Superblock)>,
    /// Neither zone can be written; the ring is not used again during this mount.
    broken: bool,
    /// Which of the zones are worn out: they accept writes, but reads of them fail.
    worn_out: [bool; 2],
}

fn slots(g: &Geometry, zone: ZoneId) -> u64 {
    let most = match g.kind(zone) {
        ZoneKind::Conventional => CONVENTIONAL_SLOTS,
        _ if is_scarce(g) => 1,
        _ => SEQUENTIAL_SLOTS,
    };
    (g.capacity(zone) / u64::from(g.block_size)).min(most)
}

/// Whether active zones are too few for each ring to keep one. Then every superblock is in a zone of its own, which is
/// finished at once.
fn is_scarce(g: &Geometry) -> bool {
    (1..8).contains(&g.max_active_zones)
}

impl Rings {
    /// Rings without superblocks.
    pub fn empty(g: &Geometry) -> Self {
        Self(ring_zones(g).map(|zones| Ring {
            zones,
            current: 0,
            used: 0,
            newest: None,
            broken: false,
            worn_out: [false; 2],
        }))
    }

    /// Active zones that the rings need.
    pub fn active_zones(&self, g: &Geometry) -> usize {
        let zones = self.0.iter().map(Ring::zone);
        let active = zones.filter(|zone| g.kind(*zone) != ZoneKind::Conventional);
        active.count().min(if is_scarce(g) { 1 } else { 2 })
    }

    /// Whether further superblocks go into a zone that has some.
    pub fn go_on_in(&self, g: &Geometry, zone: ZoneId) -> bool {
        !is_scarce(g) && self.0.iter().any(|ring| ring.zone() == zone)
    }

    /// Zones that are reset before they get another superblock.
    pub fn left(&self, g: &Geometry) -> Vec<ZoneId> {
        let mut zones = ring_zones(g).concat();
        zones.retain(|zone| !self.go_on_in(g, *zone));
        zones
    }

    /// Rings in which no superblock can be read, by their first zones.
    pub fn without_superblock(&self) -> impl Iterator<Item = ZoneId> + '_ {
        let lost = self.0.iter().filter(|ring| ring.newest.is_none());
        lost.map(|ring| ring.zones[0])
    }

    /// Finds the superblock with the highest generation; `None` if none can be read, for any reason. Fails with
    /// [`Error::UnsupportedVersion`] if only another format version is found, or a newer one.
    pub fn search(device: &dyn ZonedDevice) -> Result<(Self, Option<Superblock>)> {
        let g = device.geometry();
        let mut rings = Self::empty(g);
        let mut other = None;
        for ring in &mut rings.0 {
            for index in 0..ring.zones.len() {
                let zone = ring.zones[index];
                if zone.0 >= g.zone_count {
                    continue;
                }
                let report = device.report_zone(zone)?;
                let found = find_in(device, &report)?;
                other = other.max(found.other_version);
                let newest = ring.generation().unwrap_or(0);
                if let Some((slot, superblock)) = found.newest
                    && superblock.generation > newest
                {
                    ring.newest = Some(((index, slot), superblock));
                    ring.current = index;
                    // In a sequential zone a torn block may follow the last good one.
                    ring.used = match report.kind {
                        ZoneKind::Conventional => slot + 1,
                        _ if report.write_pointer_valid() => {
                            report.write_pointer / u64::from(g.block_size)
                        }
                        _ => slots(g, zone),
                    };
                }
            }
            if ring.newest.is_none() {
                // Whatever is in its zones: the next superblock is written at the start of the first one.
                (ring.current, ring.used) = (1, u64::MAX);
            }
        }
        let newest = rings.0.iter().filter_map(|ring| ring.newest);
        let newest = newest
            .map(|(_, superblock)| superblock)
            .max_by_key(|superblock| superblock.generation);
        let supported = FORMAT_VERSION;
        match other {
            // A newer program has written to the drive, so a superblock of a version that we read is out of date.
            Some(found) if newest.is_none() || found > supported => {
                Err(Error::UnsupportedVersion { found, supported })
            }
            _ => Ok((rings, newest)),
        }
    }

    /// Rings, by their first zones, whose newest superblock on the drive is older than `generation`, each with whether
    /// its zones can be read. If `may_be_behind`, a ring may be one superblock behind, because of a power cut between
    /// the two writes; it then counts only if damage follows its newest superblock.
    pub fn not_as_written(
        device: &dyn ZonedDevice,
        generation: u64,
        may_be_behind: bool,
    ) -> Result<Vec<(ZoneId, bool)>> {
        let (rings, _) = Self::search(device)?;
        let mut wrong = Vec::new();
        for ring in &rings.0 {
            let is_right = match ring.generation() {
                Some(found) if found >= generation => true,
                Some(found) if may_be_behind && found + 1 == generation => {
                    !ring.has_damage_behind(device)?
                }
                _ => false,
            };
            if !is_right {
                wrong.push((ring.zones[0], ring.can_be_read(device)?));
            }
        }
        Ok(wrong)
    }

    /// Avoids worn-out zones for superblocks, as long as the ring has another zone.
    pub fn keep_out_of(&mut self, zones: &WornOut) {
        for ring in &mut self.0 {
            ring.worn_out = ring.zones.map(|zone| zones.contains(zone));
        }
    }

    /// Appends a superblock to both rings; the caller flushes. Success in one ring is enough: the other is given up for
    /// this mount, and the next mount tries it again.
    ///
    /// A ring erases its newest superblock only after a flush has covered the new one in the other ring. If writes fail
    /// but resets succeed, no superblock that counts is erased.
    pub fn append(
        &mut self,
        device: &dyn ZonedDevice,
        superblock: &Superblock,
        flush: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        if self.0.iter().any(|ring| ring.broken) {
            // The last ring uses all zones that accept writes, worn out or not.
            self.0
                .iter_mut()
                .for_each(|ring| ring.worn_out = [false; 2]);
        }
        let (mut written, mut left, mut failed) = (0, Vec::new(), None);
        for ring in self.0.iter_mut().filter(|ring| !ring.broken) {
            match ring.append(device, superblock) {
                Ok(true) => written += 1,
                Ok(false) => left.push(ring),
                Err(error @ Error::Drive(ZoneError::PowerLost { .. })) => return Err(error),
                Err(Error::Drive(error)) if is_of_limit(&error) => {
                    failed = Some((None, error.into()))
                }
                // Nothing is written, and the caller can do something about the limit.
                Err(_) if matches!(failed, Some((None, _))) => {}
                Err(error) => failed = Some((Some(ring), error)),
            }
        }
        match failed {
            Some((_, error)) if written == 0 => return Err(error),
            Some((None, error)) => {
                tracing::warn!(%error, "a copy of the superblock stays an older one");
            }
            Some((Some(ring), error)) => {
                tracing::warn!(%error, zone = %ring.zone(), "a zone for superblocks fails; the other one of its end begins anew");
                left.push(ring);
            }
            None => {}
        }
        for ring in left {
            if written > 0 {
                flush()?;
            }
            match ring.begin_again(device, superblock) {
                Ok(()) => written += 1,
                Err(error) if written == 0 => return Err(error),
                Err(error) => {
                    tracing::error!(%error, "only one copy of the superblock is left");
                    ring.broken = true;
                }
            }
        }
        Ok(())
    }

    /// Finishes zones that a power cut left active although they hold all their superblocks; each would occupy an
    /// active resource.
    pub fn finish_others(&self, device: &dyn ZonedDevice) {
        let g = device.geometry();
        for ring in self.0.iter().filter(|_| g.max_active_zones > 0) {
            finish(device, ring.other());
            if is_scarce(g) {
                finish(device, ring.zone());
            }
        }
    }
}

impl Ring {
    fn zone(&self) -> ZoneId {
        self.zones[self.current]
    }

    fn generation(&self) -> Option<u64> {
        self.newest.map(|(_, superblock)| superblock.generation)
    }

    fn other(&self) -> ZoneId {
        self.zones[1 - self.current]
    }

    /// Whether the first block of both zones can be read; offline zones are not considered.
    fn can_be_read(&self, device: &dyn ZonedDevice) -> Result<bool> {
        let g = device.geometry();
        let mut block = vec![0; g.block_size as usize];
        for zone in self.zones {
            if device.report_zone(zone)?.condition == ZoneCondition::Offline {
                continue;
            }
            match device.read(g.start(zone), &mut block) {
                Ok(()) => {}
                Err(error @ ZoneError::PowerLost { .. }) => return Err(error.into()),
                Err(_) => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Whether a written block that is no superblock follows the newest superblock.
    fn has_damage_behind(&self, device: &dyn ZonedDevice) -> Result<bool> {
        let g = device.geometry();
        let block = u64::from(g.block_size);
        let Some((_, newest)) = &self.newest else {
            return Ok(true);
        };
        for (zone, is_current) in [(self.zone(), true), (self.other(), false)] {
            let report = device.report_zone(zone)?;
            let slot = match find_in(device, &report)?.newest {
                Some((slot, found)) if is_current && found.generation == newest.generation => {
                    slot + 1
                }
                // The other zone is empty or holds older superblocks.
                Some(_) => continue,
                None => 0,
            };
            let is_full = slot >= slots(g, zone);
            let is_written = match report.kind {
                ZoneKind::Conventional => true,
                _ => report.write_pointer_valid() && report.write_pointer > slot * block,
            };
            if is_full || !is_written || report.condition == ZoneCondition::Offline {
                continue;
            }
            let mut bytes = vec![0; g.block_size as usize];
            match device.read(g.absolute(ZoneAddress::new(zone, slot * block)), &mut bytes) {
                Err(error @ ZoneError::PowerLost { .. }) => return Err(error.into()),
                Err(_) => return Ok(true),
                Ok(()) => {}
            }
            let is_blank = codec::is_zero(&bytes);
            let decoded = Superblock::decode(&bytes[..ENCODED.min(bytes.len())]);
            // Above the data of a finished zone, blocks read as zeros.
            if !is_blank && decoded == Decoded::Nothing {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Appends to this ring. `false` if that would erase the superblock that counts; nothing is written then.
    fn append(&mut self, device: &dyn ZonedDevice, superblock: &Superblock) -> Result<bool> {
        let g = device.geometry();
        let is_full = self.used >= slots(g, self.zone());
        let [here, there] = [self.current, 1 - self.current].map(|index| self.worn_out[index]);
        if here && !there || is_full {
            // If the other zone is worn out, the ring begins again in this one.
            let to_worn_out = there && !here;
            if to_worn_out || !self.may_turn(g) {
                return Ok(false);
            }
            self.turn(device)?;
        }
        match self.put(device, superblock) {
            // At the limit of active zones the other zone would fail as well, and would be erased for nothing.
            Err(Error::Drive(error))
                if is_of_zone(&error) && !is_of_limit(&error) && self.may_turn(g) =>
            {
                tracing::warn!(%error, zone = %self.zone(), "no superblock can be written here");
                self.turn(device)?;
                self.put(device, superblock)?;
            }
            result => result?,
        }
        Ok(true)
    }

    /// Whether the newest superblock survives a start in the other zone: it is in the current zone, or the other zone
    /// is conventional and only its first slot is overwritten.
    fn may_turn(&self, g: &Geometry) -> bool {
        let is_overwritten = g.kind(self.other()) == ZoneKind::Conventional;
        self.newest
            .is_none_or(|((index, slot), _)| index == self.current || is_overwritten && slot > 0)
    }

    fn put(&mut self, device: &dyn ZonedDevice, superblock: &Superblock) -> Result<()> {
        let g = device.geometry();
        let offset = self.used * u64::from(g.block_size);
        let at = g.absolute(ZoneAddress::new(self.zone(), offset));
        device.write(at, &superblock.encode())?;
        self.newest = Some(((self.current, self.used), *superblock));
        self.used += 1;
        if is_scarce(g) {
            finish(device, self.zone());
        }
        Ok(())
    }

    /// Continues at the start of the other zone.
    fn turn(&mut self, device: &dyn ZonedDevice) -> Result<()> {
        self.begin_in(device, 1 - self.current)
    }

    fn begin_in(&mut self, device: &dyn ZonedDevice, index: usize) -> Result<()> {
        let [zone, other] = [index, 1 - index].map(|index| self.zones[index]);
        if device.geometry().kind(zone) != ZoneKind::Conventional {
            device.reset(zone)?;
        }
        finish(device, other);
        (self.current, self.used) = (index, 0);
        Ok(())
    }

    /// Erases the ring and begins at the start of one of its zones: the current one if possible, a worn-out one last.
    fn begin_again(&mut self, device: &dyn ZonedDevice, superblock: &Superblock) -> Result<()> {
        let mut order = [self.current, 1 - self.current];
        order.sort_by_key(|index| self.worn_out[*index]);
        self.newest = None;
        let begin = |ring: &mut Self, index| {
            ring.begin_in(device, index)?;
            ring.put(device, superblock)
        };
        begin(self, order[0]).or_else(|error| {
            tracing::warn!(%error, zone = %self.zone(), "no superblock can be written here");
            begin(self, order[1])
        })
    }
}

/// Finishes a zone of a ring if it is active. If that fails, the superblocks in it count all the same, and the finish is
/// tried again (`unfinished.rs`).
fn finish(device: &dyn ZonedDevice, zone: ZoneId) {
    let report = device.report_zone(zone);
    if report.is_ok_and(|r| r.kind != ZoneKind::Conventional && r.condition.is_active()) {
        appender::finish(device, zone);
    }
}

/// The superblocks found in one zone of a ring.
#[derive(Default)]
struct Found {
    /// With its slot.
    newest: Option<(u64, Superblock)>,
    other_version: Option<u32>,
}

/// Searches a zone for superblocks. An unreadable block counts as none, because the other ring may have the superblock.
fn find_in(device: &dyn ZonedDevice, report: &ZoneDescriptor) -> Result<Found> {
    let g = device.geometry();
    let zone = report.id;
    let block = u64::from(g.block_size);
    let mut found = Found::default();
    let mut end = match report.condition {
        ZoneCondition::Offline => 0,
        _ if report.write_pointer_valid() => (report.write_pointer / block).min(slots(g, zone)),
        // A conventional or read-only zone has no valid write pointer, but its content counts.
        _ => slots(g, zone),
    };
    let mut length = match report.kind {
        ZoneKind::Conventional => end,
        _ => READ_FIRST,
    };
    // In a conventional zone the newest superblock may lie before older ones.
    while end > 0 && (found.newest.is_none() || report.kind == ZoneKind::Conventional) {
        let begin = end.saturating_sub(length);
        let mut blocks = vec![0; ((end - begin) * block) as usize];
        let at = g.absolute(ZoneAddress::new(zone, begin * block));
        match device.read(at, &mut blocks) {
            Ok(()) => {}
            Err(error @ ZoneError::PowerLost { .. }) => return Err(error.into()),
            Err(error) if length > 1 => {
                // The blocks beside one that cannot be read may still be readable.
                tracing::warn!(%error, %zone, "superblocks cannot be read at once");
                length = 1;
                continue;
            }
            Err(error) => {
                tracing::warn!(%error, %zone, slot = begin, "a superblock cannot be read");
                end = begin;
                continue;
            }
        }
        for (slot, bytes) in (begin..).zip(blocks.chunks(block as usize)) {
            match Superblock::decode(&bytes[..ENCODED.min(bytes.len())]) {
                Decoded::Valid(s)
                    if found
                        .newest
                        .is_none_or(|(_, f)| s.generation > f.generation) =>
                {
                    found.newest = Some((slot, s));
                }
                Decoded::OtherVersion(version) => {
                    found.other_version = found.other_version.max(Some(version));
                }
                Decoded::Valid(_) | Decoded::Nothing => {}
            }
        }
        end = begin;
        if length > 1 {
            length *= 4;
        }
    }
    Ok(found)
}
