//! Unsynced bytes of logs, kept in memory of the host that outlives the process (docs/format/unsynced.md).
//!
//! A log's bytes collect in memory, because a record is padded to the block. On a drive in a file, each
//! [`crate::Writer::flush`] also copies them as notes into the host's memory, beside the drive; the next mount appends
//! what it finds there to the log. A note has an inode and an offset in the file, and the notes of a slot follow each
//! other without a gap, so what is found is a prefix of what was flushed. The journal names a log before any note of it
//! is written.

use crate::format::crc32c;
use crate::{Error, Result};
use device::ZonedDevice;
use runtime::sync::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use zone::{ByteOffset, ZoneCommand, ZoneError};

const MAGIC: u32 = 0x544f_4e55;
/// Bytes of the header: magic, UUID, two epochs, checksum.
pub const HEADER: usize = 4 + 16 + 8 + 8 + 4;
/// Offset of the first slot.
pub const SLOTS: usize = 4096;
/// Bytes of a slot. A tail is written out before its notes exceed this, even if each byte has a note with a header of
/// its own.
pub const SLOT: usize = 4 << 20;
/// Bytes of a note's header: checksum, length, inode, offset, round.
const NOTE: usize = 4 + 4 + 8 + 8 + 8;

/// State of the notes of one log.
#[derive(Default, Debug)]
pub(crate) struct Notes {
    slot: Option<usize>,
    /// Offset in the slot after the last note.
    position: usize,
    /// Number in all notes since the slot was last begun, so that older notes are not taken for their continuation.
    round: u64,
    /// Offset in the file after the last byte noted.
    end: u64,
    /// Buffer in which a note is encoded.
    buffer: Vec<u8>,
}

#[derive(Default)]
struct State {
    taken: Vec<bool>,
    /// Slots with notes of an earlier process that may not be on the drive yet, or that could not be invalidated, with
    /// the inodes of their logs. They are taken until [`Unsynced::clear`].
    left: Vec<(usize, u64)>,
    rounds: u64,
    uuid: [u8; 16],
    /// The two epochs of the journal in which the notes count.
    epochs: (u64, u64),
}

/// The notes of all logs of a mount.
pub(crate) struct Unsynced {
    device: Arc<dyn ZonedDevice>,
    is_wanted: bool,
    is_on: AtomicBool,
    has_warned: AtomicBool,
    state: Mutex<State>,
}

impl Unsynced {
    /// `left` are the notes that an earlier process has left.
    pub fn new(
        device: Arc<dyn ZonedDevice>,
        is_wanted: bool,
        uuid: [u8; 16],
        epoch: u64,
        left: &[Noted],
    ) -> Self {
        let is_on = is_wanted && device.host_memory().is_some();
        let left: Vec<_> = left.iter().map(|noted| (noted.slot, noted.inode)).collect();
        let slots = left.iter().map(|(slot, _)| slot + 1).max().unwrap_or(0);
        let is_left = |slot| left.iter().any(|(other, _)| *other == slot);
        Self {
            device,
            is_wanted,
            is_on: AtomicBool::new(is_on),
            has_warned: AtomicBool::new(false),
            state: Mutex::new(State {
                taken: (0..slots).map(is_left).collect(),
                left,
                // Not a round of an earlier process: a part of its notes may lie behind new ones. Each mount for writing
                // begins an epoch.
                rounds: epoch << 32,
                uuid,
                epochs: (epoch, epoch),
            }),
        }
    }

    /// Whether a flushed log survives the process: at once while notes are written, otherwise once it is written out at an
    /// age.
    pub const fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Adds the journal's next epoch to the header, before a superblock names it: the notes count in both epochs. Fails
    /// if there are notes that do not count in the next epoch. After a failed write no more are made.
    pub fn epoch_begins(&self, next: u64) -> Result<()> {
        let mut state = self.state.lock();
        state.epochs = (state.epochs.1, next);
        let Some(memory) = self.device.host_memory() else {
            return Ok(());
        };
        if memory.is_in_use()
            || !state.taken.is_empty()
            || !matches!(memory.has_left_behind(), Ok(false))
        {
            let written = self.change(0, &header(&state.uuid, state.epochs));
            if written.is_err() {
                self.is_on.store(false, Ordering::SeqCst);
            }
            if state.taken.contains(&true) {
                return written;
            }
        }
        Ok(())
    }

    /// Notes the bytes of `tail` that are not noted yet; `written` is the file offset where `tail` begins. False if the
    /// slot or the host has no room: the tail has to be written out.
    pub fn note(&self, notes: &mut Notes, inode: u64, written: u64, tail: &[u8]) -> bool {
        let Some(memory) = self.device.host_memory() else {
            return true;
        };
        let from = notes.end.max(written);
        let bytes = tail.get((from - written) as usize..).unwrap_or_default();
        if bytes.is_empty() {
            return true;
        }
        let is_fresh = notes.slot.is_none() || notes.end <= written;
        let slot = if is_fresh {
            let mut state = self.state.lock();
            if state.taken.is_empty()
                && !self.noted(memory.write(0, &header(&state.uuid, state.epochs)))
            {
                return false;
            }
            let slot = notes.slot.unwrap_or_else(|| take(&mut state.taken));
            state.rounds += 1;
            *notes = Notes {
                slot: Some(slot),
                position: 0,
                round: state.rounds,
                end: written,
                buffer: std::mem::take(&mut notes.buffer),
            };
            slot
        } else {
            notes.slot.unwrap_or_default()
        };
        if notes.position + NOTE + bytes.len() > SLOT {
            return false;
        }
        let note = &mut notes.buffer;
        note.clear();
        note.extend_from_slice(&[0; 4]);
        note.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        note.extend_from_slice(&inode.to_le_bytes());
        note.extend_from_slice(&from.to_le_bytes());
        note.extend_from_slice(&notes.round.to_le_bytes());
        note.extend_from_slice(bytes);
        let sum = crc32c(&note[4..]);
        note[..4].copy_from_slice(&sum.to_le_bytes());
        if !self.noted(memory.write((SLOTS + slot * SLOT + notes.position) as u64, note)) {
            return false;
        }
        notes.position += note.len();
        notes.end = from + bytes.len() as u64;
        true
    }

    /// Notes what a truncation leaves of a tail, in a slot of its own, and then invalidates all notes of before: whenever
    /// the process is killed, the old ones or the new one is whole. Fails as [`Self::forget`], and without room for the new
    /// one if the old ones may be all that keeps these bytes.
    pub fn shorten(&self, notes: &mut Notes, inode: u64, written: u64, left: &[u8]) -> Result<()> {
        let mut other = Notes::default();
        let is_noted =
            !left.is_empty() && self.is_on() && self.note(&mut other, inode, written, left);
        let is_of = |left: &(usize, u64)| left.1 == inode;
        let is_kept = notes.end > written || self.state.lock().left.iter().any(is_of);
        if is_kept && !left.is_empty() && !is_noted {
            self.release(&mut other, inode);
            return Err(no_room(SLOTS as u64, io::ErrorKind::StorageFull.into()));
        }
        let forgotten = self.forget(notes, inode);
        if forgotten.is_ok() && is_noted {
            std::mem::swap(notes, &mut other);
        }
        self.release(&mut other, inode);
        forgotten
    }

    /// Invalidates the notes of a file that is to be truncated, also those of an earlier process. If that fails, the
    /// file must stay as it is: the next mount may append what is noted to it.
    fn forget(&self, notes: &mut Notes, inode: u64) -> Result<()> {
        let state = self.state.lock();
        let left = state.left.iter().filter(|(_, of)| *of == inode);
        let mut slots = left.map(|(slot, _)| *slot).chain(notes.slot);
        slots.try_for_each(|slot| self.invalidate(slot))?;
        // What comes next begins the slot again.
        notes.end = 0;
        Ok(())
    }

    fn invalidate(&self, slot: usize) -> Result<()> {
        self.change((SLOTS + slot * SLOT) as u64, &[0; NOTE])
    }

    /// Overwrites bytes of the host's memory, if the drive has any.
    fn change(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let Some(memory) = self.device.host_memory() else {
            return Ok(());
        };
        let written = memory.write(offset, bytes);
        let failed = |error: &io::Error| {
            let kind = error.kind();
            let source = error.raw_os_error().map(io::Error::from_raw_os_error);
            let source = source.unwrap_or_else(|| io::Error::new(kind, error.to_string()));
            match zone::is_full(kind) {
                true => no_room(offset, source),
                false => Arc::new(memory.unusable(source)).into(),
            }
        };
        let error = written.as_ref().err().map(failed);
        self.noted(written);
        error.map_or(Ok(()), Err)
    }

    /// Invalidates the notes of a file without writers and frees their slot; all of the file is on the drive. A later
    /// truncation of the file does not know the slot, unless the notes could not be invalidated.
    pub fn release(&self, notes: &mut Notes, inode: u64) {
        let Some(slot) = std::mem::take(notes).slot else {
            return;
        };
        let is_invalid = self.invalidate(slot).is_ok();
        let mut state = self.state.lock();
        if !is_invalid {
            state.left.push((slot, inode));
        } else if let Some(taken) = state.taken.get_mut(slot) {
            *taken = false;
        }
    }

    /// Frees the slot of a file that is removed. Its notes stay until another log's take their place: they count if the
    /// process is killed and the removal is in no frame.
    pub fn let_go(&self, notes: &mut Notes) {
        if let Some(slot) = std::mem::take(notes).slot
            && let Some(taken) = self.state.lock().taken.get_mut(slot)
        {
            *taken = false;
        }
    }

    /// Records beside the drive that this mount has dealt with everything torn ([`crate::BlueFs::record_writes_kept`]).
    pub fn record_writes_kept(&self) {
        if let Some(memory) = self.device.host_memory()
            && let Err(error) = memory.record_writes_kept()
        {
            tracing::debug!(%error, "nothing can be kept beside the drive");
        }
    }

    /// Removes all notes; everything noted is durable, and nothing is being noted.
    pub fn clear(&self) {
        let Some(memory) = self.device.host_memory() else {
            return;
        };
        match memory.clear() {
            Ok(()) => {
                let mut state = self.state.lock();
                state.taken.clear();
                state.left.clear();
            }
            Err(error) => {
                tracing::warn!(%error, "what was kept beside the drive cannot be removed");
            }
        }
    }

    /// Whether a note was written. Without room on the host the next one is tried again; after any other error nothing
    /// is noted any more.
    pub fn noted(&self, result: io::Result<()>) -> bool {
        let Err(error) = result else {
            return true;
        };
        let is_new = match zone::is_full(error.kind()) {
            true => !self.has_warned.swap(true, Ordering::Relaxed),
            false => self.is_on.swap(false, Ordering::Relaxed),
        };
        if is_new {
            tracing::warn!(%error, "what is not synced cannot be kept beside the drive");
        }
        false
    }
}

/// The error for a write that the host has no room for: as for any other write, that is what is missing.
fn no_room(offset: u64, source: io::Error) -> Error {
    Error::Drive(ZoneError::Io {
        command: ZoneCommand::Write,
        at: ByteOffset(offset),
        source: Arc::new(source),
    })
}

fn take(taken: &mut Vec<bool>) -> usize {
    let free = taken.iter().position(|taken| !taken);
    let slot = free.unwrap_or_else(|| {
        taken.push(false);
        taken.len() - 1
    });
    taken[slot] = true;
    slot
}

/// The header before the slots: identity of the file system, and the two epochs of the journal in which the notes
/// count.
pub fn header(uuid: &[u8; 16], epochs: (u64, u64)) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&MAGIC.to_le_bytes());
    header[4..20].copy_from_slice(uuid);
    header[20..28].copy_from_slice(&epochs.0.to_le_bytes());
    header[28..36].copy_from_slice(&epochs.1.to_le_bytes());
    let sum = crc32c(&header[..36]);
    header[36..].copy_from_slice(&sum.to_le_bytes());
    header
}

/// Consecutive bytes of a file, from the notes of one slot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Noted {
    /// Number of the slot.
    pub slot: usize,
    /// Inode of the file.
    pub inode: u64,
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// The noted bytes.
    pub bytes: Vec<u8>,
}

/// Decodes the notes in `left`, which an earlier mount has left, if they are of this file system and count in `epoch`;
/// otherwise none. `left` may be any bytes.
pub fn decode(left: &[u8], uuid: &[u8; 16], epoch: u64) -> Vec<Noted> {
    let number = |at: usize| {
        let bytes = left.get(at..at + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    let epochs = (number(20).unwrap_or(0), number(28).unwrap_or(0));
    let is_ours = left.get(..HEADER) == Some(header(uuid, epochs).as_slice());
    if !is_ours || (epochs.0 != epoch && epochs.1 != epoch) {
        return Vec::new();
    }
    let slots = left.get(SLOTS..).unwrap_or_default().chunks(SLOT);
    let noted = slots.enumerate();
    noted.filter_map(|(n, slot)| decode_slot(n, slot)).collect()
}

fn decode_slot(slot: usize, bytes: &[u8]) -> Option<Noted> {
    let (first, mut rest) = decode_note(bytes)?;
    let mut noted = Noted {
        slot,
        inode: first.inode,
        offset: first.offset,
        bytes: first.bytes.to_vec(),
    };
    while let Some((next, behind)) = decode_note(rest) {
        let end = noted.offset.checked_add(noted.bytes.len() as u64);
        let follows = end == Some(next.offset);
        if next.inode != noted.inode || next.round != first.round || !follows {
            break;
        }
        noted.bytes.extend_from_slice(next.bytes);
        rest = behind;
    }
    Some(noted)
}

struct Note<'a> {
    inode: u64,
    offset: u64,
    round: u64,
    bytes: &'a [u8],
}

/// Decodes the note at the front, and returns it with the bytes after it.
fn decode_note(bytes: &[u8]) -> Option<(Note<'_>, &[u8])> {
    let (sum, checked) = bytes.split_first_chunk::<4>()?;
    let (length, fields) = checked.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length) as usize;
    let (inode, fields) = fields.split_first_chunk::<8>()?;
    let (offset, fields) = fields.split_first_chunk::<8>()?;
    let (round, fields) = fields.split_first_chunk::<8>()?;
    let payload = fields.get(..length)?;
    let whole = checked.get(..NOTE - 4 + length)?;
    let is_whole = length > 0 && u32::from_le_bytes(*sum) == crc32c(whole);
    is_whole.then(|| {
        let note = Note {
            inode: u64::from_le_bytes(*inode),
            offset: u64::from_le_bytes(*offset),
            round: u64::from_le_bytes(*round),
            bytes: payload,
        };
        (note, &fields[length..])
    })
}

/// Logs an error of writing frames instead of returning it: the next sync returns it. True if there was none.
pub(crate) fn ignore_until_synced(result: Result<()>) -> bool {
    match result {
        Ok(()) => true,
        Err(error) if error.is_of_the_end() => false,
        Err(error) => {
            tracing::warn!(%error, "a log is not in the journal yet");
            false
        }
    }
}
