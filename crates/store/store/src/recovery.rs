//! How far the write-ahead log counts after a power cut.
//!
//! Data and the batch that points to it become durable by one flush, so that after a cut a batch
//! may be there without its data. Such a batch was never acknowledged; it and everything behind
//! it is rolled back. A dry run replays the log read-only and looks at the batches that no later one
//! knows to be acknowledged: what is live of them *at the log's end* must lie below its zone's write
//! pointer and match its checksums. (What is dead at the end is not looked at: its zone may have
//! been reset since, which happens only after the batch that killed it was durable.)

use crate::checksum;
use crate::format::note::{BatchNote, Piece};
use crate::format::record::SuperRecord;
use crate::format::{FORMAT_VERSION, key};
use crate::logged::Logged;
use crate::rows::corrupt;
use crate::{Error, Result};
use bluefs::BlueFs;
use device::ZonedDevice;
use kv::{Engine, Kv, Options, Replay, ReplayFilter};
use object::ChecksumKind;
use runtime::HashMap;
use runtime::sync::Mutex;
use std::sync::Arc;
use zone::{ZoneAddress, ZoneDescriptor, ZoneId};

/// What the log said.
#[derive(Default, Debug)]
pub(crate) struct Recovery {
    /// The batch from which on nothing counts.
    pub stop: Option<u64>,
    /// The highest batch number seen.
    pub highest: u64,
    /// Batches that were replayed.
    pub replayed: usize,
    /// What they changed.
    pub logged: Logged,
}

/// Stops the replay at a batch.
struct StopAt {
    stop: Option<u64>,
    seen: Arc<Mutex<Seen>>,
}

/// What the log had in it.
#[derive(Default)]
struct Seen {
    notes: Vec<BatchNote>,
    logged: Logged,
}

impl ReplayFilter for StopAt {
    fn batch(&mut self, keys: &[&[u8]], log_data: &[&[u8]]) -> Replay {
        let mut seen = self.seen.lock();
        let before = seen.notes.len();
        for blob in log_data {
            // A note that cannot be decoded is of a batch that was damaged; the log's own
            // checksum makes that all but impossible, and stopping is the safe side.
            let Some(note) = BatchNote::decode(blob) else {
                return Replay::Stop;
            };
            if Some(note.number) == self.stop {
                return Replay::Stop;
            }
            seen.notes.push(note);
        }
        let Seen { notes, logged } = &mut *seen;
        logged.add(notes[before..].iter().map(|note| note.number), keys);
        Replay::Continue
    }
}

/// A filter for the real opening of the database.
pub(crate) fn filter(recovery: &Recovery) -> Box<dyn ReplayFilter> {
    Box::new(StopAt {
        stop: recovery.stop,
        seen: Arc::default(),
    })
}

/// Runs the log dry and finds where it has to stop.
pub(crate) fn dry_run(
    engine: &dyn Engine,
    device: &dyn ZonedDevice,
    report: &[ZoneDescriptor],
    fs: &BlueFs,
    directory: &str,
    options: &Options,
) -> Result<Recovery> {
    let options = Options {
        read_only: true,
        create_if_missing: false,
        ..options.clone()
    };
    let mut recovery = Recovery::default();
    if has_no_log(fs, directory)? {
        return Ok(recovery);
    }
    loop {
        let seen = Arc::<Mutex<Seen>>::default();
        let filter = Box::new(StopAt {
            stop: recovery.stop,
            seen: seen.clone(),
        });
        let view = Kv::open(engine, fs, directory, &options, Some(filter))?;
        let Seen { notes, logged } = std::mem::take(&mut *seen.lock());
        let highest = notes.iter().map(|n| n.number).max().unwrap_or(0);
        recovery.highest = recovery.highest.max(highest);
        recovery.replayed = notes.len();
        recovery.logged = logged;
        // Before a note is believed: another version's may mean anything.
        let is_live = |at| Ok(view.get(&key::cleaning(at))?.is_some());
        let lost = check_format(&view).and_then(|_| first_lost(device, report, &is_live, &notes));
        view.close()?;
        match lost? {
            Some(number) => {
                tracing::info!(
                    batch = number,
                    "data of an unacknowledged batch is not there; rolled back"
                );
                recovery.stop = Some(number);
            }
            None => return Ok(recovery),
        }
    }
}

/// Refuses a store of another format version.
pub(crate) fn check_format(kv: &Kv) -> Result<SuperRecord> {
    let value = kv.get(key::SUPER_FORMAT)?.ok_or(Error::Incomplete)?;
    let version = value.first_chunk::<4>().map(|v| u32::from_le_bytes(*v));
    if let Some(found) = version.filter(|v| *v != FORMAT_VERSION) {
        return Err(Error::UnsupportedVersion {
            found,
            supported: FORMAT_VERSION,
        });
    }
    SuperRecord::decode(&value)
        .ok_or_else(|| corrupt(key::SUPER_FORMAT, "no store record", value.len()))
}

/// Whether there is nothing to replay, as after an unmount: to open the database for that would read its
/// SSTs' indexes twice.
fn has_no_log(fs: &BlueFs, directory: &str) -> Result<bool> {
    for name in fs.list(directory)? {
        if name.ends_with(".log") && fs.metadata(&format!("{directory}/{name}"))?.size > 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The first batch that points to live data which is not there.
fn first_lost(
    device: &dyn ZonedDevice,
    report: &[ZoneDescriptor],
    is_live: &dyn Fn(ZoneAddress) -> Result<bool>,
    notes: &[BatchNote],
) -> Result<Option<u64>> {
    // Everything up to the last batch that a later one knows to be acknowledged is durable.
    let acknowledged = notes.iter().map(|n| n.acknowledged).max().unwrap_or(0);
    let durable = notes
        .iter()
        .position(|n| n.number == acknowledged)
        .map_or(0, |i| i + 1);
    let mut latest: HashMap<ZoneAddress, usize> = HashMap::default();
    for (index, note) in notes.iter().enumerate() {
        latest.extend(note.pieces.iter().map(|p| (p.at, index)));
    }
    // Acknowledged data in a zone tell that its last reset was not lost. Other bytes below its write pointer than were
    // written there are damage then.
    let is_prefix = |zone: ZoneId| -> Result<bool> {
        let told = report.get(zone.index());
        if !device.keeps_prefixes() || !told.is_some_and(ZoneDescriptor::write_pointer_valid) {
            return Ok(false);
        }
        for (index, note) in notes[..durable].iter().enumerate() {
            for piece in note.pieces.iter().filter(|p| p.at.zone == zone) {
                if latest.get(&piece.at) == Some(&index) && is_live(piece.at)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    };
    // What is missing of the others has been damaged since, and costs the objects that it was of.
    for (index, note) in notes.iter().enumerate().skip(durable) {
        for piece in note
            .pieces
            .iter()
            .filter(|p| latest.get(&p.at) == Some(&index))
        {
            if !is_live(piece.at)? {
                continue;
            }
            let is_lost = !below_write_pointer(device, report, piece)
                || !intact(device, piece)? && !is_prefix(piece.at.zone)?;
            if is_lost {
                return Ok(Some(note.number));
            }
        }
    }
    Ok(None)
}

fn below_write_pointer(device: &dyn ZonedDevice, report: &[ZoneDescriptor], piece: &Piece) -> bool {
    let padded = device.geometry().round_up(u64::from(piece.length));
    report.get(piece.at.zone.index()).is_some_and(|zone| {
        let end = piece.at.offset.saturating_add(padded);
        if zone.write_pointer_valid() {
            end <= zone.write_pointer
        } else {
            end <= zone.capacity
        }
    })
}

fn intact(device: &dyn ZonedDevice, piece: &Piece) -> Result<bool> {
    if piece.checksum_kind == ChecksumKind::None {
        return Ok(true);
    }
    let geometry = device.geometry();
    let mut bytes = vec![0; geometry.round_up(u64::from(piece.length)) as usize];
    match device.read(geometry.absolute(piece.at), &mut bytes) {
        Ok(()) => {}
        // An unreadable medium is reported when the object is read; it is no reason to forget.
        Err(error) if error.is_caller_mistake() => return Ok(false),
        Err(zone::ZoneError::PowerLost { command }) => {
            return Err(Error::Drive(zone::ZoneError::PowerLost { command }));
        }
        Err(_) => return Ok(true),
    }
    let bytes = &bytes[..piece.length as usize];
    let found = checksum::of_blocks(piece.checksum_kind, piece.checksum_block, bytes);
    Ok(found == piece.checksums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::MemoryDrive;
    use object::ChecksumBlock;
    use zone::{Geometry, ZoneKind};

    const GEOMETRY: Geometry = Geometry {
        block_size: 4096,
        zone_size: 1 << 20,
        zone_capacity: 1 << 20,
        zone_count: 1,
        conventional_zones: 0,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 0,
        max_active_zones: 0,
        max_append_bytes: 0,
    };

    /// The last batch was never known to be acknowledged, and its bytes are others than were written.
    #[test]
    fn damage_behind_acknowledged_data_takes_no_batch_back() {
        let device = MemoryDrive::new(GEOMETRY).unwrap();
        device.write(zone::ByteOffset(0), &[1; 8192]).unwrap();
        let report = device.report(ZoneId(0), 1).unwrap();
        let kind = ChecksumKind::Crc32c;
        let sums = |byte| checksum::of_blocks(kind, ChecksumBlock::DEFAULT, &[byte; 4096]);
        let piece = |offset, byte| Piece {
            at: ZoneAddress::new(ZoneId(0), offset),
            length: 4096,
            checksum_kind: kind,
            checksum_block: ChecksumBlock::DEFAULT,
            checksums: sums(byte),
        };
        let note = |number, acknowledged, piece| BatchNote {
            number,
            acknowledged,
            pieces: vec![piece],
        };
        let lost = |notes: &[BatchNote], live: &[u64]| {
            let is_live = |at: ZoneAddress| Ok(live.contains(&at.offset));
            first_lost(&device, &report, &is_live, notes).unwrap()
        };
        let damaged = [note(1, 0, piece(0, 1)), note(2, 1, piece(4096, 2))];
        assert_eq!(lost(&damaged, &[0, 4096]), None);
        // The zone may have been reset since, and this reset may be lost.
        assert_eq!(lost(&damaged, &[4096]), Some(2));
        let over_it = [note(1, 0, piece(4096, 1)), note(2, 1, piece(4096, 2))];
        assert_eq!(lost(&over_it, &[4096]), Some(2));
        let alone = [note(2, 0, piece(4096, 2))];
        assert_eq!(lost(&alone, &[4096]), Some(2));
    }

    /// Two batches had one flush, so neither knows that the other was acknowledged. The second removed
    /// what the first had put, and the zone was reset.
    #[test]
    fn what_is_dead_at_the_end_may_be_gone() {
        let device = MemoryDrive::new(GEOMETRY).unwrap();
        let report = device.report(ZoneId(0), 1).unwrap();
        let put = Piece {
            at: ZoneAddress::new(ZoneId(0), 0),
            length: 4096,
            checksum_kind: ChecksumKind::Crc32c,
            checksum_block: ChecksumBlock::DEFAULT,
            checksums: vec![0],
        };
        let note = |number, pieces| BatchNote {
            number,
            acknowledged: 0,
            pieces,
        };
        let notes = [note(1, vec![put]), note(2, Vec::new())];
        let lost = |is_live| first_lost(&device, &report, &|_| Ok(is_live), &notes).unwrap();
        assert_eq!((lost(true), lost(false)), (Some(1), None));
    }
}
