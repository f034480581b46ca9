//! Segment summaries: what describes the data in zones is also in zones, beside the database, for whoever
//! loses that (docs/format/store.md, "Segment summaries").
//!
//! Rows that a commit has changed wait in memory until they fill a block, which is then appended to a
//! stream. Nothing waits for that block and no flush is made for it, so a power cut costs the rows of the
//! last blocks; a full drive leaves rows waiting. In front of a zone's reset, those of its summaries' rows
//! that the database still has wait again: a row that is current is in some summary.

use crate::Result;
use crate::format::onode::Onode;
use crate::format::summary::{self, Summary};
use crate::format::{extent, key};
use crate::inner::Inner;
use crate::rows::corrupt;
use crate::stream::{AppendError, Stream};
use device::ZonedDevice;
use kv::{Batch, Change, Durability, Kv};
use runtime::sync::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use zone::{ZoneAddress, ZoneId};

/// A summary fills so many bytes, or a block of the drive if that is larger. A row that needs more gets
/// a summary of its own.
const SIZE: u64 = 4096;
/// Most bytes of rows that wait where no summary can be written; later ones have no copy.
const MAX_WAITING: usize = 4 << 20;

/// Rows that wait for a summary.
#[derive(Default)]
struct Waiting {
    rows: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    bytes: usize,
    /// So many bytes of rows are expected to fill a summary.
    full_at: usize,
    /// Below so many bytes there was no place for one.
    retry_at: usize,
}

impl Waiting {
    fn put(&mut self, key: &[u8], value: Option<&[u8]>) {
        let bytes = summary::raw_bytes(key, value);
        self.forget(key);
        if self.bytes + bytes <= MAX_WAITING {
            self.bytes += bytes;
            self.rows.insert(key.to_vec(), value.map(<[u8]>::to_vec));
        }
    }

    fn is_due(&self, size: usize, all: bool) -> bool {
        let enough = size.max(self.full_at).max(self.retry_at);
        self.bytes >= if all { 1 } else { enough }
    }

    fn forget(&mut self, key: &[u8]) {
        if let Some(value) = self.rows.remove(key) {
            self.bytes -= summary::raw_bytes(key, value.as_deref());
        }
    }

    /// Takes off as many rows as fill `size` bytes, as a summary; fewer only if `all`.
    fn take(&mut self, size: usize, all: bool, uuid: [u8; 16], number: u64) -> Option<Taken> {
        let mut has_shrunk = false;
        loop {
            let (count, raw) = self.first_rows();
            if count == 0 || (!all && self.bytes < self.full_at) {
                return None;
            }
            let rows = self.rows.iter().take(count);
            let rows = rows.map(|(key, value)| (key.as_slice(), value.as_deref()));
            let bytes = summary::encode(uuid, number, rows);
            let packed = bytes.as_ref().map_or(usize::MAX, Vec::len);
            if packed > size && count > 1 {
                has_shrunk = true;
                self.full_at = (raw.saturating_mul(size) / packed * 15 / 16).min(raw - 1);
                continue;
            }
            let is_last = count == self.rows.len();
            if packed < size / 8 * 7 && !has_shrunk && !(all && is_last) {
                self.full_at = raw * size / packed;
                // The next row may be too large to come along.
                if is_last || self.first_rows().0 > count {
                    continue;
                }
            }
            let bytes = bytes?;
            let behind = self.rows.keys().nth(count).cloned();
            let rest = behind.map_or_else(BTreeMap::new, |key| self.rows.split_off(&key));
            let rows = std::mem::replace(&mut self.rows, rest);
            self.bytes -= raw;
            return Some(Taken { rows, bytes });
        }
    }

    /// The first rows, at least one, that have no more than `full_at` bytes, and their bytes.
    fn first_rows(&self) -> (usize, usize) {
        let (mut count, mut raw) = (0, 0);
        for (key, value) in &self.rows {
            let bytes = summary::raw_bytes(key, value.as_deref());
            if count > 0 && raw + bytes > self.full_at {
                break;
            }
            (count, raw) = (count + 1, raw + bytes);
        }
        (count, raw)
    }
}

/// Rows, and the summary of them.
struct Taken {
    rows: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    bytes: Vec<u8>,
}

/// The rows that wait, and the index of what has been written.
#[derive(Default)]
pub(crate) struct Summaries {
    waiting: Mutex<Waiting>,
    /// Held while a zone's row of the index is read and written.
    index: Mutex<()>,
}

impl Summaries {
    /// A batch is in the database: what it says of data in zones waits for a summary. Small objects, whose
    /// bytes are in the database, are none of it. Who calls this keeps others from the same rows.
    pub fn note(&self, batch: &Batch) {
        let mut inline = BTreeSet::new();
        for change in batch.changes() {
            if let Change::Put(key, value) = change
                && let Some((map, _)) = key::parse_extent(key)
                && is_inline(value)
            {
                inline.insert(map);
            }
        }
        let mut waiting = self.waiting.lock();
        for change in batch.changes() {
            match change {
                Change::Put(key, value) => match key.first() {
                    Some(&(key::COLLECTION | key::BLOB)) => waiting.put(key, Some(value)),
                    Some(&key::EXTENT) if !is_inline(value) => waiting.put(key, Some(value)),
                    Some(&key::ONODE) if !is_of(value, &inline) => waiting.put(key, Some(value)),
                    _ => waiting.forget(key),
                },
                Change::Delete(key) => match key.first() {
                    Some(&(key::COLLECTION | key::ONODE)) => waiting.put(key, None),
                    _ => waiting.forget(key),
                },
                Change::Merge(..) | Change::LogData(_) => {}
            }
        }
    }
}

fn is_inline(extent: &[u8]) -> bool {
    extent.first() == Some(&extent::INLINE)
}

/// Whether all that an object shows is in these maps.
fn is_of(onode: &[u8], maps: &BTreeSet<u64>) -> bool {
    !maps.is_empty()
        && Onode::decode(onode).is_some_and(|o| o.segments.iter().all(|s| maps.contains(&s.map)))
}

impl Inner {
    /// Appends the rows that wait to `stream`, those that fill whole summaries or `all`. That there is a copy
    /// of them is worth no commit's failure.
    pub(crate) fn write_summaries(&self, stream: &Stream, all: bool) {
        if let Err(error) = self.try_to_write(stream, all) {
            tracing::warn!(%error, "no segment summary could be written");
        }
    }

    fn try_to_write(&self, stream: &Stream, all: bool) -> Result<()> {
        let geometry = self.device.geometry();
        let size = geometry.round_up(SIZE);
        loop {
            if !self.summaries.waiting.lock().is_due(size as usize, all) {
                return Ok(());
            }
            let kv = self.kv()?;
            let number = self.numbers.take(&kv)?;
            let taken = {
                let mut waiting = self.summaries.waiting.lock();
                waiting.take(size as usize, all, self.uuid, number)
            };
            let Some(taken) = taken else { return Ok(()) };
            let bytes = taken.bytes.len() as u64;
            match self.append_summary(stream, &taken.bytes) {
                Ok(Some(at)) => {
                    self.summaries.waiting.lock().retry_at = 0;
                    self.enter_summary(&kv, at, bytes)?;
                }
                // A row that is larger than what can be appended at once has no copy.
                Ok(None) if bytes > size => {}
                not_written => {
                    let mut waiting = self.summaries.waiting.lock();
                    for (key, value) in &taken.rows {
                        if !waiting.rows.contains_key(key) {
                            waiting.put(key, value.as_deref());
                        }
                    }
                    // Not again with the next commit.
                    waiting.retry_at = waiting.bytes + size as usize;
                    return not_written.map(drop);
                }
            }
        }
    }

    /// Where the summary lies; `None` if there is no place for it.
    fn append_summary(&self, stream: &Stream, bytes: &[u8]) -> Result<Option<ZoneAddress>> {
        /// A summary does not go on in another zone: the second one is as good as empty.
        const TRIES: u32 = 2;
        let padded = appender::padded(bytes, self.device.geometry().block_size);
        let length = padded.len() as u64;
        for _ in 0..TRIES {
            if !self.has_place_for_summary(length) {
                return Ok(None);
            }
            let placed = match stream.append(&padded) {
                Ok(placed) => placed,
                Err(AppendError::NeedsZone) => return Ok(None),
                Err(AppendError::Drive(error)) => return Err(error.into()),
            };
            // Dead from the beginning: no object has it.
            let mut hold = self.hold();
            let is_whole = placed.length == length;
            if is_whole {
                self.freelist.add_summary(placed.at.zone, length);
            }
            hold.add(placed.at.zone, placed.length, |_| {});
            if is_whole {
                return Ok(Some(placed.at));
            }
        }
        Ok(None)
    }

    fn enter_summary(&self, kv: &Kv, at: ZoneAddress, bytes: u64) -> Result<()> {
        let block_size = u64::from(self.device.geometry().block_size);
        let _alone = self.summaries.index.lock();
        let mut places = read_places(kv, at.zone)?;
        places.push(((at.offset / block_size) as u32, bytes as u32));
        let mut batch = Batch::default();
        batch.put(&key::summaries(at.zone), &summary::encode_places(&places));
        // Not synced: whatever resets the zone comes behind it in the log.
        Ok(kv.write(&batch, Durability::Buffered)?)
    }

    /// The summaries in `zone`, those that can be read, and how many others there are.
    pub(crate) fn summaries_in(&self, kv: &Kv, zone: ZoneId) -> Result<(Vec<Summary>, usize)> {
        let geometry = self.device.geometry();
        let (mut found, mut unreadable) = (Vec::new(), 0);
        for (block, bytes) in read_places(kv, zone)? {
            let mut buffer = vec![0; geometry.round_up(bytes.into()) as usize];
            let offset = u64::from(block) * u64::from(geometry.block_size);
            let end = offset + buffer.len() as u64;
            let at = geometry.absolute(ZoneAddress::new(zone, offset));
            let is_there =
                end <= geometry.capacity(zone) && self.device.read(at, &mut buffer).is_ok();
            match summary::decode(&buffer, self.uuid).filter(|_| is_there) {
                Some(summary) => found.push(summary),
                None => unreadable += 1,
            }
        }
        Ok((found, unreadable))
    }

    /// In front of the reset of `zone`: what its summaries have and the database still has waits for
    /// another summary. What cannot be read of them is only a copy.
    pub(crate) fn keep_summaries_of(&self, zone: ZoneId) -> Result<()> {
        let (found, _) = self.summaries_in(&*self.kv()?, zone)?;
        for summary in found {
            // A commit that changes one of the rows is through, or comes behind this.
            let _alone = self.mutators.write();
            let kv = self.kv()?;
            for (key, value) in summary.rows {
                if value.is_some() && kv.get(&key)? == value {
                    let mut waiting = self.summaries.waiting.lock();
                    waiting.put(&key, value.as_deref());
                }
            }
        }
        self.write_summaries(&self.moved, false);
        Ok(())
    }
}

/// Where the summaries of a zone begin, in blocks, and how long they are.
pub(crate) fn read_places(kv: &Kv, zone: ZoneId) -> Result<Vec<(u32, u32)>> {
    let key = key::summaries(zone);
    let Some(value) = kv.get(&key)? else {
        return Ok(Vec::new());
    };
    summary::decode_places(&value)
        .ok_or_else(|| corrupt(&key, "no places of summaries", value.len()))
}

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Rows of a few bytes beside rows of a megabyte, that compress well or not at all.
    #[test]
    fn every_row_comes_off_once_whatever_its_size() {
        const SIZE: usize = 4096;
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..20 {
            let (mut waiting, mut expected) = (Waiting::default(), BTreeMap::new());
            let (mut found, mut number) = (BTreeMap::new(), 0);
            for n in 0..random.u32(1..600) {
                let length = match random.u8(..50) {
                    0 => random.usize(..400_000),
                    _ => random.usize(..200),
                };
                let mut value = vec![random.u8(..); length];
                if random.bool() {
                    random.fill(&mut value);
                }
                if waiting.bytes + length + 100 > MAX_WAITING {
                    break;
                }
                let key = random.u64(..).to_be_bytes();
                waiting.put(&key, Some(&value));
                expected.insert(key.to_vec(), Some(value));
                let all = n % 97 == 96;
                while let Some(taken) = waiting.take(SIZE, all, [1; 16], number) {
                    number += 1;
                    let decoded = summary::decode(&taken.bytes, [1; 16]).unwrap();
                    assert!(taken.bytes.len() <= SIZE || taken.rows.len() == 1);
                    assert!(decoded.rows.into_iter().collect::<BTreeMap<_, _>>() == taken.rows);
                    found.extend(taken.rows);
                }
            }
            while let Some(taken) = waiting.take(SIZE, true, [1; 16], number) {
                found.extend(taken.rows);
            }
            assert_eq!((waiting.bytes, waiting.rows.len()), (0, 0));
            assert!(found == expected);
        }
    }
}
