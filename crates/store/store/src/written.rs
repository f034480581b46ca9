//! Data that is on the drive and that no object names yet.
//!
//! It lies in zones among committed data, for hours if a user uploads slowly. So that the cleaner can move it,
//! [`Uncommitted`] knows the places of each writer's data until the commit takes it; a place changes only while no
//! commit is under way.

use crate::format::note::Piece;
use crate::freelist::Freelist;
use object::{Blob, Codec};
use runtime::sync::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use zone::ZoneId;

/// Data on the drive that no object names yet; hand it to a [`crate::Transaction`]. Dropped
/// without a commit, its bytes are dead.
pub struct Written {
    pub(crate) length: u64,
    /// All the data, if it is small enough to go to the metadata.
    pub(crate) inline: Option<Vec<u8>>,
    /// The data in zones, which are not reset until the commit has ended.
    pub(crate) hold: Hold,
}

impl Written {
    /// Bytes of data.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl fmt::Debug for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Written")
            .field("length", &self.length)
            .field("pieces", &self.hold.pieces.lock().list.len())
            .finish()
    }
}

/// A run of an object's bytes in one zone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    pub piece: Piece,
    pub codec: Codec,
    /// Bytes before compression.
    pub raw: u32,
}

impl Run {
    /// The run as a blob of its own.
    pub fn blob(&self) -> Blob {
        Blob {
            codec: self.codec,
            raw: self.raw,
            fragments: vec![self.piece.fragment()],
            checksum_kind: self.piece.checksum_kind,
            checksum_block: self.piece.checksum_block,
            checksums: self.piece.checksums.clone(),
        }
    }
}

/// Runs that one writer has placed in zones, in the order of its data.
#[derive(Default)]
struct Pieces {
    list: Vec<Run>,
    /// Bytes in whole blocks in each zone, even after the list has been taken for a commit.
    bytes: BTreeMap<ZoneId, u64>,
}

type Shared = Arc<Mutex<Pieces>>;

/// All data in zones that is not committed yet, by writer.
#[derive(Default)]
pub(crate) struct Uncommitted {
    writers: Mutex<(u64, BTreeMap<u64, Shared>)>,
}

/// A run that the cleaner may move.
pub(crate) struct Movable {
    pieces: Shared,
    pub run: Run,
}

impl Uncommitted {
    /// The runs in `zone`, to which no writes may be under way.
    pub fn in_zone(&self, zone: ZoneId) -> Vec<Movable> {
        let writers: Vec<_> = self.writers.lock().1.values().cloned().collect();
        let mut movable = Vec::new();
        for pieces in writers {
            let found = pieces.lock().list.clone();
            let found = found.into_iter().filter(|run| run.piece.at.zone == zone);
            movable.extend(found.map(|run| Movable {
                pieces: pieces.clone(),
                run,
            }));
        }
        movable
    }
}

impl Movable {
    /// Replaces the run by its copy, which `copy` holds, unless the run has been committed or given up. No commit may
    /// be under way.
    pub fn move_to(self, copy: Hold, block_size: u32) {
        let mut pieces = self.pieces.lock();
        let index = pieces.list.iter().position(|run| *run == self.run);
        let Some(index) = index else { return };
        let mut new = copy.pieces.lock();
        pieces
            .list
            .splice(index..=index, std::mem::take(&mut new.list));
        for (zone, bytes) in std::mem::take(&mut new.bytes) {
            *pieces.bytes.entry(zone).or_default() += bytes;
        }
        let piece = &self.run.piece;
        let (zone, bytes) = (piece.at.zone, piece.fragment().padded(block_size));
        if let Some(left) = pieces.bytes.get_mut(&zone) {
            *left = left.saturating_sub(bytes);
        }
        copy.freelist.drop_uncommitted(zone, bytes);
    }
}

/// Places in zones and reserved space of one writer, given back on drop.
pub(crate) struct Hold {
    freelist: Arc<Freelist>,
    uncommitted: Arc<Uncommitted>,
    number: u64,
    pieces: Shared,
    reserved: u64,
}

impl Hold {
    pub fn new(freelist: Arc<Freelist>, uncommitted: Arc<Uncommitted>) -> Self {
        let pieces = Shared::default();
        let number = {
            let mut writers = uncommitted.writers.lock();
            writers.0 += 1;
            let number = writers.0;
            writers.1.insert(number, pieces.clone());
            number
        };
        Self {
            freelist,
            uncommitted,
            number,
            pieces,
            reserved: 0,
        }
    }

    /// Adds `bytes` of reserved space, to be given back on drop.
    pub fn add_reserved(&mut self, bytes: u64) {
        self.reserved += bytes;
    }

    /// Enters a successful write of `bytes` to `zone`, which is unpinned; `enter` adds its runs.
    pub fn add(&mut self, zone: ZoneId, bytes: u64, enter: impl FnOnce(&mut Vec<Run>)) {
        let mut pieces = self.pieces.lock();
        *pieces.bytes.entry(zone).or_default() += bytes;
        enter(&mut pieces.list);
        self.freelist.end_write(zone, bytes);
    }

    /// Whether the places are in the store that has this freelist.
    pub fn is_of(&self, freelist: &Arc<Freelist>) -> bool {
        Arc::ptr_eq(&self.freelist, freelist)
    }

    /// Whether nothing has been placed.
    pub fn is_empty(&self) -> bool {
        self.pieces.lock().bytes.is_empty()
    }

    /// Takes the runs out for a commit under way; their zones are held on.
    pub fn take(&self) -> Vec<Run> {
        std::mem::take(&mut self.pieces.lock().list)
    }

    /// Hands the reservation over to the caller.
    pub fn take_reserved(&mut self) -> u64 {
        std::mem::take(&mut self.reserved)
    }

    /// Keeps the zones for good: whether a failed commit points to them is unknown.
    pub fn leak(mut self) {
        self.pieces.lock().bytes.clear();
        self.reserved = 0;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut pieces = self.pieces.lock();
        // A cleaner that is just moving a run of this list finds it gone.
        pieces.list.clear();
        // A commit has taken the reservation.
        if self.reserved > 0 && !pieces.bytes.is_empty() {
            self.freelist.note_given_up();
        }
        for (zone, bytes) in std::mem::take(&mut pieces.bytes) {
            self.freelist.drop_uncommitted(zone, bytes);
        }
        drop(pieces);
        // Only now: as long as its bytes count as uncommitted, the cleaner has to find the writer.
        self.uncommitted.writers.lock().1.remove(&self.number);
        self.freelist.unreserve(self.reserved);
    }
}
