//! Finds how far the write-ahead log counts after a power cut.
//!
//! One flush makes both data and the batch that points to it durable, so after a power cut a batch may be in the log
//! without its data. Such a batch was never acknowledged: it and all later ones are rolled back. A dry run replays the
//! log read-only and checks the batches that neither a later batch nor a durability mark of BlueFS proves durable: data
//! of theirs that is live *at the log's end* must lie below its zone's write pointer and match its checksums. (Data
//! that is dead at the end is not checked: its zone may have been reset since, which happens only after the batch that
//! killed it was durable.) Where only the process died and the drive's host did not, every write arrived, and missing
//! data is later damage.

use crate::checksum;
use crate::format::note::{BatchNote, Piece};
use crate::format::record::SuperRecord;
use crate::format::{FORMAT_VERSION, key};
use crate::logged::Logged;
use crate::rows::corrupt;
use crate::{Error, Result};
use bluefs::BlueFs;
use device::{Keeps, ZonedDevice};
use kv::{Engine, Kv, LoggedBatch, Options, Replay, ReplayFilter};
use object::ChecksumKind;
use runtime::sync::Mutex;
use std::ops::Range;
use std::sync::Arc;
use zone::{ZoneAddress, ZoneDescriptor, ZoneId};

/// Result of the dry run.
#[derive(Default, Debug)]
pub(crate) struct Recovery {
    /// The first batch that is rolled back, with all later ones; `None` if the whole log counts.
    pub stop: Option<u64>,
    /// The highest batch number seen.
    pub highest: u64,
    /// Number of batches before [`Self::stop`].
    pub replayed: usize,
    /// Keys that these batches changed.
    pub logged: Logged,
}

/// Replay filter that stops before the batch numbered `stop` and collects the notes of earlier ones.
struct StopAt {
    stop: Option<u64>,
    seen: Arc<Mutex<Seen>>,
    fs: BlueFs,
    /// Name of the current log, and how many of its bytes BlueFS marked durable.
    marked: (String, u64),
}

/// Notes and keys collected during a replay.
#[derive(Default)]
struct Seen {
    notes: Vec<BatchNote>,
    /// How many notes, from the front, durability marks of BlueFS cover, and so their data.
    marked: usize,
    logged: Logged,
}

impl StopAt {
    fn new(stop: Option<u64>, fs: &BlueFs) -> Self {
        Self {
            stop,
            seen: Arc::default(),
            fs: fs.clone(),
            marked: Default::default(),
        }
    }

    /// Whether a flush had covered the batch before something later was written.
    fn is_marked(&mut self, batch: &LoggedBatch<'_>) -> bool {
        if self.marked.0 != batch.log {
            let bytes = self.fs.marked_durable(batch.log).unwrap_or(0);
            self.marked = (batch.log.to_owned(), bytes);
        }
        batch.end <= self.marked.1
    }
}

impl ReplayFilter for StopAt {
    fn batch(&mut self, batch: &LoggedBatch<'_>) -> Replay {
        let is_marked = self.is_marked(batch);
        let mut seen = self.seen.lock();
        let before = seen.notes.len();
        for blob in batch.log_data {
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
        if is_marked {
            seen.marked = seen.notes.len();
        }
        let Seen { notes, logged, .. } = &mut *seen;
        logged.add(notes[before..].iter().map(|note| note.number), batch.keys);
        Replay::Continue
    }
}

/// The filter with which the database is opened after [`dry_run`].
pub(crate) fn filter(recovery: &Recovery, fs: &BlueFs) -> Box<dyn ReplayFilter> {
    Box::new(StopAt::new(recovery.stop, fs))
}

/// Replays the log read-only, again and again, until all batches before the stop have their live data.
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
        let filter = Box::new(StopAt::new(recovery.stop, fs));
        let seen = filter.seen.clone();
        let view = Kv::open(engine, fs, directory, &options, Some(filter))?;
        let Seen {
            notes,
            marked,
            logged,
        } = std::mem::take(&mut *seen.lock());
        let highest = notes.iter().map(|n| n.number).max().unwrap_or(0);
        recovery.highest = recovery.highest.max(highest);
        recovery.replayed = notes.len();
        recovery.logged = logged;
        // Checked before the notes are: those of another version may mean anything.
        let drive = Told { device, report };
        let any_live =
            |zone, offsets, is: &dyn Fn(ZoneAddress) -> bool| any_live(&view, zone, offsets, is);
        let lost =
            check_format(&view).and_then(|_| first_lost(&drive, &any_live, (&notes, marked)));
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

/// Whether the logs are empty, as after an unmount. Opening the database for a dry run would then only read the
/// indexes of its SSTs twice.
fn has_no_log(fs: &BlueFs, directory: &str) -> Result<bool> {
    for name in fs.list(directory)? {
        if name.ends_with(".log") && fs.metadata(&format!("{directory}/{name}"))?.size > 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a live fragment begins at these offsets of a zone and satisfies the predicate.
type AnyLive<'a> = &'a dyn Fn(ZoneId, Range<u64>, &dyn Fn(ZoneAddress) -> bool) -> Result<bool>;

fn any_live(
    view: &Kv,
    zone: ZoneId,
    offsets: Range<u64>,
    is: &dyn Fn(ZoneAddress) -> bool,
) -> Result<bool> {
    let key = |offset| key::cleaning(ZoneAddress::new(zone, offset));
    for row in view.scan(&key(offsets.start), Some(&key(offsets.end))) {
        let (key, _) = row?;
        if key::parse_cleaning(&key).is_some_and(is) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Number of the first batch that points to live data which is not there. The first `marked` notes are known to be
/// durable.
fn first_lost(
    drive: &Told<'_>,
    any_live: AnyLive<'_>,
    (notes, marked): (&[BatchNote], usize),
) -> Result<Option<u64>> {
    if drive.device.keeps() == Keeps::Writes {
        return Ok(None);
    }
    // Durable, too, is every batch up to the last that a later one knows to be acknowledged.
    let acknowledged = notes.iter().map(|n| n.acknowledged).max().unwrap_or(0);
    let position = notes.iter().position(|n| n.number == acknowledged);
    let durable = position.map_or(0, |i| i + 1).max(marked);
    let others: Vec<&Piece> = notes[durable..].iter().flat_map(|n| &n.pieces).collect();
    // A transaction may split its own piece or an earlier one into several, by overwriting or punching a part of it.
    let has = |piece: &Piece, at: ZoneAddress| {
        let end = piece.at.offset.saturating_add(piece.length.into());
        piece.at.zone == at.zone && (piece.at.offset..end).contains(&at.offset)
    };
    let is_later = |index: usize, at| {
        notes[index + 1..]
            .iter()
            .flat_map(|n| &n.pieces)
            .any(|p| has(p, at))
    };
    let is_durable = |at: ZoneAddress| !others.iter().any(|piece| has(piece, at));
    // Durable live data in a zone proves that the zone's last reset was not lost. Wrong bytes below the write pointer
    // are damage then, not a write that the power cut lost.
    let is_prefix = |zone: ZoneId| match drive.pointer(zone) {
        Some(end) if drive.device.keeps() >= Keeps::Prefixes => any_live(zone, 0..end, &is_durable),
        _ => Ok(false),
    };
    // If durable data is above the write pointer, the zone was damaged; a power cut does not explain the rest either.
    let is_set_back = |zone: ZoneId| match drive.pointer(zone) {
        Some(end) => any_live(zone, end..u64::MAX, &is_durable),
        None => Ok(false),
    };
    // Durable batches are not checked: what they miss was damaged later and costs only the objects that it belongs to.
    for (index, note) in notes.iter().enumerate().skip(durable) {
        for piece in &note.pieces {
            let (zone, offset) = (piece.at.zone, piece.at.offset);
            let offsets = offset..offset.saturating_add(piece.length.into());
            // While a part is live the zone is not reset, so the whole piece is there. A live fragment of a later piece
            // says nothing: between the two the zone was reset, and what was there before had no live bytes any more.
            if !any_live(zone, offsets, &|at| !is_later(index, at))? {
                continue;
            }
            let is_lost = match drive.reaches(piece) {
                false => !is_set_back(zone)?,
                true => !intact(drive.device, piece)? && !is_prefix(zone)?,
            };
            if is_lost {
                return Ok(Some(note.number));
            }
        }
    }
    Ok(None)
}

/// A drive and its zone report.
struct Told<'a> {
    device: &'a dyn ZonedDevice,
    report: &'a [ZoneDescriptor],
}

impl Told<'_> {
    /// The write pointer of a zone that has one.
    fn pointer(&self, zone: ZoneId) -> Option<u64> {
        let zone = self.report.get(zone.index())?;
        zone.write_pointer_valid().then_some(zone.write_pointer)
    }

    /// Whether the whole piece, padded to blocks, lies below its zone's write pointer.
    fn reaches(&self, piece: &Piece) -> bool {
        let padded = self.device.geometry().round_up(u64::from(piece.length));
        self.report.get(piece.at.zone.index()).is_some_and(|zone| {
            let end = piece.at.offset.saturating_add(padded);
            end <= self.pointer(zone.id).unwrap_or(zone.capacity)
        })
    }
}

fn intact(device: &dyn ZonedDevice, piece: &Piece) -> Result<bool> {
    if piece.checksum_kind == ChecksumKind::None {
        return Ok(true);
    }
    let geometry = device.geometry();
    let mut bytes = vec![0; geometry.round_up(u64::from(piece.length)) as usize];
    match device.read(geometry.absolute(piece.at), &mut bytes) {
        Ok(()) => {}
        // An unreadable medium is reported when the object is read; it is no reason to roll a batch back.
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

    fn drive(zones: u32) -> MemoryDrive {
        MemoryDrive::new(Geometry {
            zone_count: zones,
            ..GEOMETRY
        })
        .unwrap()
    }

    /// A block filled with `byte`.
    fn piece(zone: u32, offset: u64, byte: u8) -> Piece {
        let (kind, block) = (ChecksumKind::Crc32c, ChecksumBlock::DEFAULT);
        Piece {
            at: ZoneAddress::new(ZoneId(zone), offset),
            length: 4096,
            checksum_kind: kind,
            checksum_block: block,
            checksums: checksum::of_blocks(kind, block, &[byte; 4096]),
        }
    }

    fn note(number: u64, acknowledged: u64, piece: Option<Piece>) -> BatchNote {
        BatchNote {
            number,
            acknowledged,
            pieces: piece.into_iter().collect(),
        }
    }

    /// The batch that is lost if the places in `live` are live.
    fn lost(
        device: &dyn ZonedDevice,
        notes: &[BatchNote],
        marked: usize,
        live: &[ZoneAddress],
    ) -> Option<u64> {
        let report = device
            .report(ZoneId(0), device.geometry().zone_count)
            .unwrap();
        let drive = Told {
            device,
            report: &report,
        };
        let any = |zone, offsets: Range<u64>, is: &dyn Fn(ZoneAddress) -> bool| {
            let there = |at: &&ZoneAddress| at.zone == zone && offsets.contains(&at.offset);
            Ok(live.iter().filter(there).any(|at| is(*at)))
        };
        first_lost(&drive, &any, (notes, marked)).unwrap()
    }

    /// No later batch acknowledges the last one, and its bytes differ from those written.
    #[test]
    fn damage_behind_acknowledged_data_takes_no_batch_back() {
        let device = drive(1);
        device.write(zone::ByteOffset(0), &[1; 8192]).unwrap();
        let at = |offset| ZoneAddress::new(ZoneId(0), offset);
        let (front, behind) = (piece(0, 0, 1), piece(0, 4096, 2));
        let damaged = [
            note(1, 0, Some(front.clone())),
            note(2, 1, Some(behind.clone())),
        ];
        assert_eq!(lost(&device, &damaged, 0, &[at(0), at(4096)]), None);
        // The zone may have been reset since, and this reset may be lost.
        assert_eq!(lost(&device, &damaged, 0, &[at(4096)]), Some(2));
        let over_it = [
            note(1, 0, Some(piece(0, 4096, 1))),
            note(2, 1, Some(behind.clone())),
        ];
        assert_eq!(lost(&device, &over_it, 0, &[at(4096)]), Some(2));
        let alone = [note(2, 0, Some(behind.clone()))];
        assert_eq!(lost(&device, &alone, 0, &[at(4096)]), Some(2));
        // A live place that no note names was written out of the log before, and so was durable.
        assert_eq!(lost(&device, &alone, 0, &[at(0), at(4096)]), None);
        // The rest of its own piece, of which the batch has punched out a part, proves nothing.
        let long = Piece {
            length: 8192,
            ..behind
        };
        let alone = [note(2, 0, Some(long))];
        assert_eq!(lost(&device, &alone, 0, &[at(4096), at(8192)]), Some(2));
    }

    /// The second batch has cut the front off what the first wrote, or the zone has been reset and written anew since.
    #[test]
    fn what_a_later_batch_left_of_a_piece_is_looked_for() {
        let device = drive(1);
        let at = |block: u64| ZoneAddress::new(ZoneId(0), block * 4096);
        let long = Piece {
            length: 3 * 4096,
            ..piece(0, 0, 1)
        };
        let cut = [note(1, 0, Some(long.clone())), note(2, 0, None)];
        assert_eq!(lost(&device, &cut, 0, &[at(1)]), Some(1));
        assert_eq!(lost(&device, &cut, 0, &[at(3)]), None);
        device.write(zone::ByteOffset(0), &[2; 8192]).unwrap();
        let anew = [
            note(1, 0, Some(long)),
            note(2, 0, None),
            note(3, 0, Some(piece(0, 0, 2))),
            note(4, 0, Some(piece(0, 4096, 2))),
        ];
        assert_eq!(lost(&device, &anew, 0, &[at(1)]), None);
        assert_eq!(lost(&device, &anew, 0, &[at(0), at(1)]), None);
    }

    /// Two writers ran at the same time, so neither batch acknowledges the other. A flush followed the first.
    #[test]
    fn what_a_mark_covers_is_not_taken_back() {
        let device = drive(2);
        let at = |zone| ZoneAddress::new(ZoneId(zone), 0);
        let notes = [
            note(1, 0, Some(piece(0, 0, 1))),
            note(2, 0, Some(piece(1, 0, 2))),
        ];
        let live = [at(0), at(1)];
        assert_eq!(lost(&device, &notes, 0, &live), Some(1));
        assert_eq!(lost(&device, &notes, 1, &live), Some(2));
        assert_eq!(lost(&device, &notes, 2, &live), None);
    }

    /// A zone that has lost durable data was damaged; the power cut does not explain the missing rest.
    #[test]
    fn a_zone_that_went_back_takes_no_batch_back() {
        let device = drive(1);
        device.write(zone::ByteOffset(0), &[1; 4096]).unwrap();
        let at = |block: u64| ZoneAddress::new(ZoneId(0), block * 4096);
        let last = [note(7, 6, Some(piece(0, 2 * 4096, 2)))];
        assert_eq!(lost(&device, &last, 0, &[at(0), at(2)]), Some(7));
        assert_eq!(lost(&device, &last, 0, &[at(0), at(1), at(2)]), None);
    }

    /// One flush covered two batches, so neither acknowledges the other. The second removed what the first had put, and
    /// the zone was reset.
    #[test]
    fn what_is_dead_at_the_end_may_be_gone() {
        let notes = [note(1, 0, Some(piece(0, 0, 1))), note(2, 0, None)];
        let lost = |live| lost(&drive(1), &notes, 0, live);
        let at = ZoneAddress::new(ZoneId(0), 0);
        assert_eq!((lost(&[at]), lost(&[])), (Some(1), None));
    }
}
