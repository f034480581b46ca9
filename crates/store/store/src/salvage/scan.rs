//! Scans every block of a drive for segment summaries.

use super::Salvage;
use super::found::Found;
use super::report::Scanned;
use crate::answers::check_answers;
use crate::blob_reader::{ReadError, read_blob, read_part};
use crate::format::summary::{self, Summary};
use crate::{Error, Result};
use device::ZonedDevice;
use object::{Blob, ChecksumKind};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use zone::{Geometry, ZoneAddress, ZoneCondition, ZoneDescriptor, ZoneId, ZoneKind};

/// Bytes of one read.
const PIECE: u64 = 4 << 20;
/// Most blobs of a store that are read to find out whether its data is on the drive.
const MOST_TRIED: usize = 1024;

/// Place of a summary, and the store that wrote it. Its rows are read again when they are needed: clients decide how many
/// summaries there are within objects, and some hundred bytes of one may stand for megabytes of rows.
struct Place {
    at: ZoneAddress,
    /// Bytes without padding.
    length: u32,
    uuid: [u8; 16],
}

impl Place {
    /// The summary; `None` if it cannot be read any more.
    fn read(&self, device: &dyn ZonedDevice) -> Result<Option<Summary>> {
        let geometry = device.geometry();
        let mut bytes = vec![0; geometry.round_up(self.length.into()) as usize];
        match device.read(geometry.absolute(self.at), &mut bytes) {
            Ok(()) => Ok(summary::decode(&bytes, self.uuid)),
            Err(error) => check_answers(device, error).map(|()| None),
        }
    }

    /// The blobs that the summary describes.
    fn blobs(&self, device: &dyn ZonedDevice) -> Result<Vec<Blob>> {
        Ok(gather(device, [self])?.0.blobs().collect())
    }
}

impl Salvage {
    /// Reads every zone up to its write pointer. `progress` is called with bytes done and bytes in all. Of several
    /// stores' summaries, those of one count: of a store whose data is where they say, or else of any, of the one with
    /// the most.
    ///
    /// # Errors
    /// [`Error::NothingToSalvage`] if there are none; the error of a read if the drive answers no other read either.
    pub fn scan(device: Arc<dyn ZonedDevice>, progress: &mut dyn FnMut(u64, u64)) -> Result<Self> {
        let mut scanner = Scanner {
            device: &*device,
            done: 0,
            all: 0,
            scanned: Scanned::default(),
            places: Vec::new(),
            written: BTreeMap::new(),
            progress,
        };
        scanner.all_zones()?;
        let Scanner {
            mut scanned,
            places,
            written,
            ..
        } = scanner;
        let all = places.len();
        let places = without_objects(&*device, places)?;
        let Some(uuid) = store_of(&*device, &places)? else {
            return Err(Error::NothingToSalvage);
        };
        scanned.uuid = uuid;
        let ours: Vec<_> = places
            .into_iter()
            .filter(|place| place.uuid == uuid)
            .collect();
        scanned.foreign_summaries = (all - ours.len()) as u64;
        let (found, unreadable) = gather(&*device, &ours)?;
        let places = found.places();
        scanned.unreadable_summaries = unreadable;
        scanned.summaries = ours.len() as u64 - unreadable;
        let summaries = ours.iter().map(|place| place.at.zone);
        let zones: BTreeSet<ZoneId> = places
            .iter()
            .map(|(at, _)| at.zone)
            .chain(summaries)
            .collect();
        scanned.data_zones = zones.len() as u64;
        scanned.data_zone_bytes = zones.iter().filter_map(|zone| written.get(zone)).sum();
        let all: u64 = written.values().sum();
        scanned.other_zone_bytes = all - scanned.data_zone_bytes;
        scanned.described_bytes = described(&*device, &found);
        scanned.undescribed_bytes = scanned
            .data_zone_bytes
            .saturating_sub(scanned.described_bytes);
        let summaries = ours.iter().map(|place| (place.at, place.length)).collect();
        Ok(Self {
            device,
            found,
            scanned,
            summaries,
        })
    }
}

/// The store whose summaries count. Those of others may be left of an object, as of an image of another drive that was
/// removed since: their rows name places on that drive.
fn store_of(device: &dyn ZonedDevice, places: &[Place]) -> Result<Option<[u8; 16]>> {
    let mut stores: BTreeMap<[u8; 16], Vec<&Place>> = BTreeMap::new();
    for place in places {
        stores.entry(place.uuid).or_default().push(place);
    }
    let is_one = stores.len() == 1;
    let mut ranked = Vec::new();
    for (uuid, places) in stores {
        let is_here = is_one || has_data(device, &places)?;
        ranked.push((is_here, places.len(), uuid));
    }
    Ok(ranked.into_iter().max().map(|(_, _, uuid)| uuid))
}

/// Whether some blob is where a row says. Zeros prove nothing: they are everywhere.
fn has_data(device: &dyn ZonedDevice, places: &[&Place]) -> Result<bool> {
    // Rows of all ages: the places of old ones may have been used again.
    let step = places.len().div_ceil(MOST_TRIED).max(1);
    let most = MOST_TRIED / places.len().div_ceil(step).max(1);
    for place in places.iter().step_by(step) {
        let mut blobs = place.blobs(device)?;
        blobs.retain(|blob| blob.checksum_kind != ChecksumKind::None);
        let step = blobs.len().div_ceil(most).max(1);
        for blob in blobs.iter().step_by(step) {
            let mut bytes = vec![0; blob.raw.min(blob.checksum_block.bytes()) as usize];
            let read = read_blob(device, blob, 0, &mut bytes);
            if is_whole(device, read)? && bytes.iter().any(|byte| *byte != 0) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether bytes could be read and match their checksums.
fn is_whole<T>(device: &dyn ZonedDevice, read: Result<T, ReadError>) -> Result<bool> {
    match read {
        Ok(_) => Ok(true),
        Err(error) => error.check_answers(device).map(|()| false),
    }
}

/// End of the part of a zone that may hold data: its write pointer; its capacity if it has none; 0 if it can have no
/// data.
pub(super) fn written(geometry: &Geometry, zone: &ZoneDescriptor) -> u64 {
    match (zone.kind, zone.condition) {
        // Data is in sequential zones only.
        (ZoneKind::Conventional, _) | (_, ZoneCondition::Offline) => 0,
        (_, ZoneCondition::ReadOnly | ZoneCondition::Full) => geometry.capacity(zone.id),
        _ => zone.write_pointer,
    }
}

/// The rows of the summaries at these places, and how many cannot be read any more.
fn gather<'a>(
    device: &dyn ZonedDevice,
    places: impl IntoIterator<Item = &'a Place>,
) -> Result<(Found, u64)> {
    let (mut found, mut unreadable) = (Found::default(), 0);
    for place in places {
        match place.read(device)? {
            Some(summary) => found.add(summary),
            None => unreadable += 1,
        }
    }
    Ok((found, unreadable))
}

/// Removes summaries that are bytes of an object, as in an image of a drive. That a row covers the place is no proof,
/// because the zone may have been reset since; that the bytes there match the row's checksum is.
fn without_objects(device: &dyn ZonedDevice, mut places: Vec<Place>) -> Result<Vec<Place>> {
    let at: Vec<ZoneAddress> = places.iter().map(|place| place.at).collect();
    let mut in_objects = BTreeSet::new();
    for place in &places {
        for blob in place.blobs(device)? {
            let mut begins: u32 = 0;
            for fragment in &blob.fragments {
                let stored = begins;
                begins = begins.saturating_add(fragment.length);
                let Some(from) = fragment.at else { continue };
                let to = ZoneAddress::new(from.zone, from.offset + u64::from(fragment.length));
                let first = at.partition_point(|at| *at < from);
                for at in at[first..].iter().take_while(|at| **at < to) {
                    let byte = stored + (at.offset - from.offset) as u32;
                    let is_proven = !in_objects.contains(at)
                        && blob.checksum_kind != ChecksumKind::None
                        && is_whole(device, read_part(device, &blob, byte..byte + 1))?;
                    if is_proven {
                        in_objects.insert(*at);
                    }
                }
            }
        }
    }
    places.retain(|place| !in_objects.contains(&place.at));
    Ok(places)
}

/// Bytes of the drive that rows describe as data, each counted once, padding included.
fn described(device: &dyn ZonedDevice, found: &Found) -> u64 {
    let geometry = device.geometry();
    let (mut bytes, mut end) = (0, ZoneAddress::new(ZoneId(0), 0));
    for (place, length) in found.places() {
        let behind = place.offset.saturating_add(geometry.round_up(length));
        let from = match place.zone == end.zone {
            true => place.offset.max(end.offset),
            false => place.offset,
        };
        bytes += behind.saturating_sub(from);
        if place.zone != end.zone || behind > end.offset {
            end = ZoneAddress::new(place.zone, behind);
        }
    }
    bytes
}

struct Scanner<'a> {
    device: &'a dyn ZonedDevice,
    done: u64,
    all: u64,
    scanned: Scanned,
    places: Vec<Place>,
    /// Bytes written, by zone, without summaries.
    written: BTreeMap<ZoneId, u64>,
    progress: &'a mut dyn FnMut(u64, u64),
}

impl Scanner<'_> {
    fn all_zones(&mut self) -> Result<()> {
        let geometry = self.device.geometry();
        let zones = self.device.report(ZoneId(0), geometry.zone_count)?;
        let written = |zone: &ZoneDescriptor| written(geometry, zone);
        self.all = zones.iter().map(written).sum();
        for zone in &zones {
            if zone.condition == ZoneCondition::Offline {
                self.scanned.offline_zones += 1;
            }
            self.one_zone(zone.id, written(zone))?;
        }
        Ok(())
    }

    fn one_zone(&mut self, zone: ZoneId, end: u64) -> Result<()> {
        let block = u64::from(self.device.geometry().block_size);
        // Summaries that a client made may overlap.
        let (mut at, mut summary_bytes, mut covered) = (0, 0, 0);
        while at < end {
            (self.progress)(self.done, self.all);
            let bytes = self.read(zone, at, PIECE.min(end - at))?;
            for (index, found) in bytes.chunks(block as usize).enumerate() {
                if !summary::begins(found) {
                    continue;
                }
                let here = ZoneAddress::new(zone, at + index as u64 * block);
                let Some(length) = summary::bytes(found) else {
                    continue;
                };
                let whole = self.device.geometry().round_up(length as u64);
                let from = index * block as usize;
                let parsed = match bytes.get(from..from + length) {
                    Some(bytes) => summary::parse(bytes),
                    None if here.offset + whole <= end => {
                        summary::parse(&self.read(zone, here.offset, whole)?)
                    }
                    None => None,
                };
                if let Some((uuid, _)) = parsed {
                    let behind = here.offset + whole;
                    summary_bytes += behind.saturating_sub(covered.max(here.offset));
                    covered = covered.max(behind);
                    self.places.push(Place {
                        at: here,
                        length: length as u32,
                        uuid,
                    });
                }
            }
            at += bytes.len() as u64;
            self.done += bytes.len() as u64;
        }
        self.written.insert(zone, end.saturating_sub(summary_bytes));
        Ok(())
    }

    /// Reads bytes of a zone; unreadable blocks are zeros, and are counted.
    fn read(&mut self, zone: ZoneId, offset: u64, length: u64) -> Result<Vec<u8>> {
        let geometry = self.device.geometry();
        let mut bytes = vec![0; length as usize];
        let start = geometry.absolute(ZoneAddress::new(zone, offset));
        let Err(error) = self.device.read(start, &mut bytes) else {
            return Ok(bytes);
        };
        check_answers(self.device, error)?;
        let block = geometry.block_size as usize;
        let mut last = None;
        for (index, part) in bytes.chunks_mut(block).enumerate() {
            let at = ZoneAddress::new(zone, offset + (index * block) as u64);
            if let Err(error) = self.device.read(geometry.absolute(at), part) {
                part.fill(0);
                self.scanned.unreadable_bytes += block as u64;
                last = Some(error);
            }
        }
        // It may have stopped answering among these.
        last.map_or(Ok(()), |error| check_answers(self.device, error))?;
        Ok(bytes)
    }
}
