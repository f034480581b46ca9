//! [`Mirrored`]: a drive on which zones can be paired with a twin that holds the same bytes, so that damage to one zone
//! destroys no metadata.
//!
//! A pair is addressed by the number of its first zone and appears as one zone to the layers above. A write, reset or
//! finish is done to the first zone and then to its twin; a failure of either fails the pair, and the error names the
//! zone that failed. A read uses one copy, and the other if that fails. After a power cut each copy holds a prefix of
//! the writes, so the longer one counts. The pairs are recorded in the journal; its replay registers them here.

use appender::Unfinished;
use device::file::HostMemory;
use device::{Keeps, ZonedDevice};
use runtime::sync::RwLock;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use zone::{
    ByteOffset, Geometry, ZoneAddress, ZoneCondition, ZoneDescriptor, ZoneError, ZoneId, ZoneKind,
    ZoneResult,
};

/// Bytes that [`Mirror::catch_up`] copies at a time.
const AT_ONCE: u64 = 1 << 20;

/// Operations of a [`ZonedDevice`] that concern pairs of zones and their copies.
pub(crate) trait Mirror: ZonedDevice {
    /// Pairs two zones, which hold the same bytes from now on. False if they do not exist or differ in kind or
    /// capacity.
    fn pair(&self, zone: ZoneId, twin: ZoneId) -> bool;

    /// The second zone of the pair that is addressed as `zone`.
    fn twin(&self, zone: ZoneId) -> Option<ZoneId>;

    /// The number by which the pair of this zone is addressed; the zone itself if it is no twin.
    fn goes_by(&self, zone: ZoneId) -> ZoneId;

    /// The zones of a pair, or `zone` alone if it has no twin, that are read-only or offline.
    fn broken_of(&self, zone: ZoneId) -> Vec<ZoneDescriptor>;

    /// Dissolves a pair and returns its zones; `zone` alone if it has no twin.
    fn part(&self, zone: ZoneId) -> Vec<ZoneId>;

    /// Dissolves all pairs except those addressed by these numbers.
    fn keep_pairs(&self, of: &BTreeSet<ZoneId>);

    /// Reads only the copy that [`ZonedDevice::read`] tries first.
    fn read_first(&self, at: ZoneAddress, buffer: &mut [u8]) -> ZoneResult<()>;

    /// Reads only the copy that [`ZonedDevice::read`] tries last; `None` if there is one copy.
    fn read_other(&self, at: ZoneAddress, buffer: &mut [u8]) -> Option<ZoneResult<()>>;

    /// Both zones of a pair as the drive numbers them, the one that is read first in front. Another thread may change
    /// that order at any time, so a caller that compares the copies reads each with [`Self::read_copy`].
    fn copies_of(&self, zone: ZoneId) -> Option<[ZoneId; 2]>;

    /// Reads whole blocks at an offset of one zone of a pair.
    fn read_copy(&self, copy: ZoneId, offset: u64, buffer: &mut [u8]) -> ZoneResult<()>;

    /// Reads `length` bytes at `at` from each copy that has a write pointer above `at`, and returns them with the
    /// zone's descriptor; no bytes for a copy that cannot be read there.
    fn read_each(&self, at: ZoneAddress, length: usize) -> Vec<(ZoneDescriptor, Vec<u8>)>;

    /// The smaller of the two write pointers of a pair, if both zones have one. The two differ by the last write if the
    /// process was killed between writing its two copies.
    fn shorter_end(&self, zone: ZoneId) -> Option<u64>;

    /// Copies the missing end of a sequential pair's shorter zone from the longer one; in a full zone only the bytes
    /// below `live_end` count. Returns the number of missing bytes.
    fn catch_up(&self, zone: ZoneId, live_end: u64) -> ZoneResult<u64>;

    /// Reads `copy` first from now on, one of [`Self::copies_of`] a pair, and marks the other one as wrong.
    fn turn_to(&self, zone: ZoneId, copy: ZoneId);

    /// Marks a copy as wrong or unreadable. Which copy is read first stays as it is; both may have damage, in different
    /// places.
    fn set_damaged(&self, zone: ZoneId);

    /// Forgets the state of both copies after a reset: the first zone is read first, and none is damaged.
    fn begin_again(&self, zone: ZoneId);

    /// Pairs of which one copy was found wrong or unreadable since the pair was reset.
    fn damaged(&self) -> BTreeSet<ZoneId>;

    /// Sequential zones, or pairs, whose last finish has failed and that were not reset since.
    fn unfinished(&self) -> &Unfinished;
}

#[derive(Clone, Copy)]
struct Pair {
    twin: ZoneId,
    /// The twin is read first.
    reads_twin: bool,
    /// One copy was found wrong or unreadable.
    is_damaged: bool,
}

impl Pair {
    fn new(twin: ZoneId) -> Self {
        Self {
            twin,
            reads_twin: false,
            is_damaged: false,
        }
    }
}

/// A drive with paired zones; the head of this file says how they behave.
pub(crate) struct Mirrored<D> {
    inner: D,
    pairs: RwLock<BTreeMap<ZoneId, Pair>>,
    unfinished: Unfinished,
}

impl<D: Deref<Target: ZonedDevice> + Send + Sync> Mirrored<D> {
    /// A drive without pairs.
    pub fn new(inner: D) -> Self {
        Self {
            inner,
            pairs: RwLock::default(),
            unfinished: Unfinished::default(),
        }
    }

    /// The drive without pairing.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    fn pair_of(&self, zone: ZoneId) -> Option<Pair> {
        self.pairs.read().get(&zone).copied()
    }

    /// The pair that `at` lies in, by its first zone, and the same position in the twin.
    fn in_pair(&self, at: ByteOffset) -> Option<(ZoneId, Pair, ByteOffset)> {
        if self.pairs.read().is_empty() {
            return None;
        }
        let g = self.inner.geometry();
        let ZoneAddress { zone, offset } = g.address(at)?;
        let pair = self.pair_of(zone)?;
        Some((zone, pair, g.absolute(ZoneAddress::new(pair.twin, offset))))
    }

    /// The positions of both copies; the one that is read first comes first.
    fn copies(&self, at: ByteOffset) -> Option<[ByteOffset; 2]> {
        let (_, pair, twin) = self.in_pair(at)?;
        Some(if pair.reads_twin {
            [twin, at]
        } else {
            [at, twin]
        })
    }

    /// Runs `does` on both zones of a pair and returns the first error.
    fn both(&self, zone: ZoneId, does: impl Fn(ZoneId) -> ZoneResult<()>) -> ZoneResult<()> {
        let result = does(zone);
        let Some(pair) = self.pair_of(zone) else {
            return result;
        };
        result.and(does(pair.twin))
    }

    /// The descriptor of a pair, and whether its twin holds more.
    fn merge(&self, one: ZoneDescriptor, twin: &ZoneDescriptor) -> (ZoneDescriptor, bool) {
        let rank = |zone: &ZoneDescriptor| match zone.condition {
            ZoneCondition::Offline => (0, 0),
            _ if zone.write_pointer_valid() => (1, zone.write_pointer),
            _ => (1, zone.capacity),
        };
        let twin_has_more = rank(twin) > rank(&one);
        let more = if twin_has_more { twin } else { &one };
        let condition = match more.condition {
            ZoneCondition::Offline => ZoneCondition::Offline,
            // Writes to the pair would fail, so it counts as read-only.
            _ if is_broken(&one) || is_broken(twin) => ZoneCondition::ReadOnly,
            condition => condition,
        };
        let merged = ZoneDescriptor {
            id: one.id,
            condition,
            ..*more
        };
        (merged, twin_has_more)
    }
}

impl<D: Deref<Target: ZonedDevice> + Send + Sync> Mirror for Mirrored<D> {
    fn pair(&self, zone: ZoneId, twin: ZoneId) -> bool {
        let g = self.inner.geometry();
        let is_there = |zone: ZoneId| zone.0 < g.zone_count;
        let fits = is_there(zone)
            && is_there(twin)
            && zone != twin
            && g.kind(zone) == g.kind(twin)
            && g.capacity(zone) == g.capacity(twin);
        if fits {
            let mut pairs = self.pairs.write();
            if pairs.get(&zone).is_none_or(|pair| pair.twin != twin) {
                pairs.insert(zone, Pair::new(twin));
            }
        }
        fits
    }

    fn twin(&self, zone: ZoneId) -> Option<ZoneId> {
        self.pair_of(zone).map(|pair| pair.twin)
    }

    fn goes_by(&self, zone: ZoneId) -> ZoneId {
        let pairs = self.pairs.read();
        let is_twin = |(_, pair): &(&ZoneId, &Pair)| pair.twin == zone;
        pairs.iter().find(is_twin).map_or(zone, |(zone, _)| *zone)
    }

    fn broken_of(&self, zone: ZoneId) -> Vec<ZoneDescriptor> {
        let zones = std::iter::once(zone).chain(self.twin(zone));
        let told = zones.filter_map(|zone| self.inner.report_zone(zone).ok());
        told.filter(is_broken).collect()
    }

    fn part(&self, zone: ZoneId) -> Vec<ZoneId> {
        let pair = self.pairs.write().remove(&zone);
        std::iter::once(zone)
            .chain(pair.map(|pair| pair.twin))
            .collect()
    }

    fn keep_pairs(&self, of: &BTreeSet<ZoneId>) {
        self.pairs.write().retain(|zone, _| of.contains(zone));
    }

    fn read_first(&self, at: ZoneAddress, buffer: &mut [u8]) -> ZoneResult<()> {
        let place = self.inner.geometry().absolute(at);
        let first = self.copies(place).map_or(place, |[first, _]| first);
        self.inner.read(first, buffer)
    }

    fn read_other(&self, at: ZoneAddress, buffer: &mut [u8]) -> Option<ZoneResult<()>> {
        let [_, other] = self.copies(self.inner.geometry().absolute(at))?;
        Some(self.inner.read(other, buffer))
    }

    fn copies_of(&self, zone: ZoneId) -> Option<[ZoneId; 2]> {
        let pair = self.pair_of(zone)?;
        Some(match pair.reads_twin {
            true => [pair.twin, zone],
            false => [zone, pair.twin],
        })
    }

    fn read_copy(&self, copy: ZoneId, offset: u64, buffer: &mut [u8]) -> ZoneResult<()> {
        let at = ZoneAddress::new(copy, offset);
        self.inner.read(self.inner.geometry().absolute(at), buffer)
    }

    fn read_each(&self, at: ZoneAddress, length: usize) -> Vec<(ZoneDescriptor, Vec<u8>)> {
        let zones = std::iter::once(at.zone).chain(self.twin(at.zone));
        let read = |zone| {
            let told = self.inner.report_zone(zone).ok()?;
            if !told.write_pointer_valid() || told.write_pointer <= at.offset {
                return None;
            }
            let mut bytes = vec![0; length];
            let at = ZoneAddress::new(zone, at.offset);
            let place = self.geometry().absolute(at);
            if self.inner.read(place, &mut bytes).is_err() {
                bytes.clear();
            }
            Some((told, bytes))
        };
        zones.filter_map(read).collect()
    }

    fn shorter_end(&self, zone: ZoneId) -> Option<u64> {
        let end = |zone| {
            let told = self.inner.report_zone(zone).ok()?;
            told.write_pointer_valid().then_some(told.write_pointer)
        };
        Some(end(zone)?.min(end(self.twin(zone)?)?))
    }

    fn catch_up(&self, zone: ZoneId, live_end: u64) -> ZoneResult<u64> {
        let Some(pair) = self.pair_of(zone) else {
            return Ok(0);
        };
        let [one, twin] = [
            self.inner.report_zone(zone)?,
            self.inner.report_zone(pair.twin)?,
        ];
        let is_known = one.write_pointer_valid() && twin.write_pointer_valid();
        if !is_known || one.kind == ZoneKind::Conventional {
            return Ok(0);
        }
        let has_less = |a: &ZoneDescriptor, b: &ZoneDescriptor| a.write_pointer < b.write_pointer;
        let (less, more) = if has_less(&one, &twin) {
            (one, twin)
        } else {
            (twin, one)
        };
        // In a full zone the bytes above the live end were perhaps never written.
        let end = match more.condition {
            ZoneCondition::Full => more.write_pointer.min(live_end),
            _ => more.write_pointer,
        };
        let g = self.inner.geometry();
        let mut bytes = vec![0; AT_ONCE.min(end.saturating_sub(less.write_pointer)) as usize];
        let mut offset = less.write_pointer;
        while offset < end {
            bytes.truncate((end - offset) as usize);
            self.inner
                .read(g.absolute(ZoneAddress::new(more.id, offset)), &mut bytes)?;
            self.inner
                .write(g.absolute(ZoneAddress::new(less.id, offset)), &bytes)?;
            offset += bytes.len() as u64;
        }
        if more.condition == ZoneCondition::Full && offset < less.capacity {
            self.inner.finish(less.id)?;
        }
        if let Some(pair) = self.pairs.write().get_mut(&zone) {
            pair.reads_twin &= less.id != zone;
        }
        Ok(end.saturating_sub(less.write_pointer))
    }

    fn set_damaged(&self, zone: ZoneId) {
        if let Some(pair) = self.pairs.write().get_mut(&zone) {
            pair.is_damaged = true;
        }
    }

    fn begin_again(&self, zone: ZoneId) {
        if let Some(pair) = self.pairs.write().get_mut(&zone) {
            *pair = Pair::new(pair.twin);
        }
    }

    fn damaged(&self) -> BTreeSet<ZoneId> {
        let pairs = self.pairs.read();
        let damaged = pairs.iter().filter(|(_, pair)| pair.is_damaged);
        damaged.map(|(zone, _)| *zone).collect()
    }

    fn unfinished(&self) -> &Unfinished {
        &self.unfinished
    }

    fn turn_to(&self, zone: ZoneId, copy: ZoneId) {
        if let Some(pair) = self.pairs.write().get_mut(&zone) {
            pair.reads_twin = copy == pair.twin;
            pair.is_damaged = true;
            let other = pair.twin;
            tracing::warn!(%zone, %other, reads_twin = pair.reads_twin, "one copy of metadata is damaged");
        }
    }
}

/// Whether a zone is read-only or offline.
pub(crate) fn is_broken(zone: &ZoneDescriptor) -> bool {
    matches!(
        zone.condition,
        ZoneCondition::ReadOnly | ZoneCondition::Offline
    )
}

impl<D: Deref<Target: ZonedDevice> + Send + Sync> ZonedDevice for Mirrored<D> {
    fn keeps(&self) -> Keeps {
        self.inner.keeps()
    }
    fn host_memory(&self) -> Option<&HostMemory> {
        self.inner.host_memory()
    }
    fn host_free_bytes(&self) -> Option<u64> {
        self.inner.host_free_bytes()
    }
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }
    fn flush(&self) -> ZoneResult<()> {
        self.inner.flush()
    }
    fn report(&self, first: ZoneId, count: u32) -> ZoneResult<Vec<ZoneDescriptor>> {
        let told = self.inner.report(first, count)?;
        let mut merged = told.clone();
        let last = ZoneId(first.0.saturating_add(count));
        let mut turned = Vec::new();
        // The lock is not held during the report, because every read takes it.
        let pairs: Vec<(ZoneId, Pair)> = {
            let pairs = self.pairs.read();
            pairs.range(first..last).map(|(z, p)| (*z, *p)).collect()
        };
        for (zone, pair) in pairs {
            let Some(one) = merged.get_mut(zone.index() - first.index()) else {
                continue;
            };
            let twin = pair.twin.index().checked_sub(first.index());
            let twin = match twin.and_then(|index| told.get(index)) {
                Some(twin) => *twin,
                None => self.inner.report_zone(pair.twin)?,
            };
            let (pair_is, twin_has_more) = self.merge(*one, &twin);
            *one = pair_is;
            turned.extend((twin_has_more && !pair.reads_twin).then_some(zone));
        }
        for zone in turned {
            if let Some(pair) = self.pairs.write().get_mut(&zone) {
                pair.reads_twin = true;
            }
        }
        Ok(merged)
    }
    fn read(&self, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        let Some([first, other]) = self.copies(at) else {
            return self.inner.read(at, buffer);
        };
        match self.inner.read(first, buffer) {
            Ok(()) => Ok(()),
            Err(error @ ZoneError::PowerLost { .. }) => Err(error),
            Err(error) => {
                tracing::warn!(%error, "reading the other copy");
                let Some((zone, ..)) = self.in_pair(at) else {
                    return Err(error);
                };
                self.set_damaged(zone);
                self.inner.read(other, buffer).map_err(|_| error)
            }
        }
    }
    fn read_many(&self, reads: &mut [(ByteOffset, &mut [u8])]) -> ZoneResult<()> {
        let mut first: Vec<(ByteOffset, &mut [u8])> = Vec::with_capacity(reads.len());
        for (at, buffer) in reads.iter_mut() {
            let place = self.copies(*at).map_or(*at, |[first, _]| first);
            first.push((place, buffer));
        }
        match self.inner.read_many(&mut first) {
            Err(error) if !matches!(error, ZoneError::PowerLost { .. }) => {
                let mut again = reads.iter_mut();
                again.try_for_each(|(at, buffer)| self.read(*at, buffer))
            }
            result => result,
        }
    }
    fn write(&self, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        self.inner.write(at, data)?;
        let Some((zone, _, twin)) = self.in_pair(at) else {
            return Ok(());
        };
        let result = self.inner.write(twin, data);
        if let Err(error) = &result
            && appender::is_of_limit(error)
            && at == self.inner.geometry().start(zone)
        {
            // The caller takes a zone whose first write hit a limit for empty.
            self.inner.reset(zone)?;
        }
        result
    }
    fn append(&self, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        let at = self.inner.append(zone, data)?;
        match self.in_pair(at) {
            Some((_, _, twin)) => self.inner.write(twin, data).map(|()| at),
            None => Ok(at),
        }
    }
    fn open(&self, zone: ZoneId) -> ZoneResult<()> {
        self.both(zone, |zone| self.inner.open(zone))
    }
    fn close(&self, zone: ZoneId) -> ZoneResult<()> {
        self.both(zone, |zone| self.inner.close(zone))
    }
    fn finish(&self, zone: ZoneId) -> ZoneResult<()> {
        let finished = self.both(zone, |zone| self.inner.finish(zone));
        if finished.is_ok() {
            self.unfinished.remove(zone);
        } else if self.inner.geometry().kind(zone) != ZoneKind::Conventional {
            self.unfinished.add(zone);
        }
        finished
    }
    fn reset(&self, zone: ZoneId) -> ZoneResult<()> {
        self.both(zone, |zone| self.inner.reset(zone))?;
        self.unfinished.remove(zone);
        self.begin_again(zone);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::MemoryDrive;

    /// The layers above know a pair by one number; the error must name the zone that failed.
    #[test]
    fn an_error_of_a_pair_names_the_zone_that_failed() {
        let geometry = Geometry {
            block_size: 4096,
            zone_size: 1 << 20,
            zone_capacity: 1 << 20,
            zone_count: 30,
            conventional_zones: 0,
            conventional_parts: 1,
            sequential_kind: ZoneKind::SequentialWriteRequired,
            max_open_zones: 0,
            max_active_zones: 0,
            max_append_bytes: 0,
        };
        let drive = MemoryDrive::new(geometry).unwrap();
        let mirrored = Mirrored::new(&drive);
        let (zone, twin) = (ZoneId(8), ZoneId(20));
        assert!(mirrored.pair(zone, twin));
        mirrored
            .write(drive.geometry().start(zone), &[1; 4096])
            .unwrap();
        drive.set_condition(twin, ZoneCondition::Offline).unwrap();
        let failed = mirrored.reset(zone).unwrap_err();
        assert!(
            matches!(failed, ZoneError::Offline { zone, .. } if zone == twin),
            "{failed}"
        );
        assert_eq!(
            (mirrored.goes_by(twin), mirrored.goes_by(zone)),
            (zone, zone)
        );
        let broken: Vec<ZoneId> = mirrored
            .broken_of(zone)
            .iter()
            .map(|zone| zone.id)
            .collect();
        assert_eq!(broken, [twin]);
        // The pair is not lost.
        let told = mirrored.report_zone(zone).unwrap();
        assert_eq!(told.condition, ZoneCondition::ReadOnly);
    }
}
