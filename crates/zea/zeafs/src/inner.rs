//! The state of a mounted file system that one lock guards: the map, its uncommitted changes, buffers, and
//! zones.

use crate::area::{MetadataLog, most_metadata};
use crate::error::{Error, Result};
use crate::file_map::{File, FileMap};
use crate::format::operation::{Operation, Piece};
use crate::host_room::HostRoom;
use crate::space::Space;
use crate::streams::{Lifetime, Stream};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use zone::{ZoneCommand, ZoneError};

/// Bytes of metadata of a piece, without its checksums; a piece may be split where a zone ends.
const PIECE_METADATA: u64 = 128;
/// One byte of metadata in this many of data: checksums, and pieces that end with their zone.
const PART_METADATA: u64 = 1024;

/// The state behind the lock of [`crate::shared::Shared`].
#[derive(Debug)]
pub(crate) struct Inner {
    pub map: FileMap,
    /// The encoded operations of the next frame.
    pub pending: Vec<u8>,
    /// Pieces that belong to no file once the next frame is durable.
    pub doomed: Vec<Piece>,
    /// The pieces that frames already written have dropped, each with the flush that makes its frame durable.
    pub leaving: VecDeque<(u64, Piece)>,
    /// Most bytes that a checkpoint of the map has: those of the last one, and of all changes since.
    pub metadata: u64,
    pub log: MetadataLog,
    pub space: Space,
    /// By inode: bytes of files that have not been written to an extent.
    pub buffers: BTreeMap<u64, Vec<u8>>,
    /// By inode: number of open readers.
    pub readers: BTreeMap<u64, u32>,
    /// Deleted files that still have readers.
    pub orphans: BTreeMap<u64, File>,
    pub locks: BTreeSet<String>,
    /// Bytes that were moved to free zones, since the mount.
    pub moved_bytes: u64,
    /// Why all changes are refused; `None` while they are not.
    pub stopped: Option<String>,
}

impl Inner {
    /// Refuses changes after metadata could not be written.
    pub fn check(&self) -> Result<()> {
        match &self.stopped {
            None => Ok(()),
            Some(cause) => Err(Error::Stopped {
                cause: cause.clone(),
            }),
        }
    }

    pub fn inode(&self, name: &str) -> Result<u64> {
        let inode = self.map.names.get(name).copied();
        inode.ok_or_else(|| Error::NotFound { name: name.into() })
    }

    /// The file, even if it is deleted and still read.
    pub fn file(&self, inode: u64) -> Option<&File> {
        self.map
            .files
            .get(&inode)
            .or_else(|| self.orphans.get(&inode))
    }

    /// Size of a file in bytes, including its buffer.
    pub fn size(&self, inode: u64) -> u64 {
        let buffered = self.buffers.get(&inode).map_or(0, Vec::len) as u64;
        self.file(inode).map_or(0, |file| file.size) + buffered
    }

    /// Applies a change to the map and adds it to the next frame.
    pub fn change(&mut self, operation: Operation) {
        let mut encoded = Vec::new();
        operation.encode(&mut encoded);
        // A file that the change removes is kept for its readers.
        let goes = match &operation {
            Operation::Create { name, .. } | Operation::Remove { name } => self.map.names.get(name),
            Operation::Rename { from, to } if from != to => self.map.names.get(to),
            _ => None,
        };
        let goes = goes.copied();
        let file = goes.and_then(|inode| Some((inode, self.map.files.get(&inode)?.clone())));
        let Ok(dropped) = self.map.apply(operation) else {
            debug_assert!(false, "a change that does not go with the map");
            return;
        };
        self.metadata += encoded.len() as u64;
        self.pending.extend(encoded);
        match file {
            Some((inode, file)) => {
                let buffered = self.buffers.remove(&inode);
                if self.readers.contains_key(&inode) {
                    self.orphans.insert(inode, file);
                    self.buffers.extend(buffered.map(|buffer| (inode, buffer)));
                } else {
                    self.doomed.extend(dropped);
                }
            }
            None => self.doomed.extend(dropped),
        }
    }

    /// Closes a reader. The last reader of a deleted file frees the file.
    pub fn leave(&mut self, inode: u64) {
        let Some(count) = self.readers.get_mut(&inode) else {
            return;
        };
        *count -= 1;
        if *count == 0 {
            self.readers.remove(&inode);
            if let Some(file) = self.orphans.remove(&inode) {
                self.buffers.remove(&inode);
                self.doomed.extend(file.pieces);
            }
        }
    }

    /// Whether `bytes` more may be buffered, because the drive has room for them and all other buffers. If that
    /// is not certain, all buffers are written out first, so that accepted data never lacks the space that new
    /// data takes.
    ///
    /// # Errors
    /// The metadata log or the host's disk has no room for them.
    pub fn may_wait(&mut self, bytes: usize) -> Result<bool> {
        let waiting = self.waiting(bytes);
        let pieces = self.buffers.len() as u64 + 1;
        self.may_grow(pieces * PIECE_METADATA + waiting / PART_METADATA)?;
        if self.has_room_for(waiting) && self.host_has_room_for(waiting) {
            return Ok(true);
        }
        self.write_all_out()?;
        let waiting = self.waiting(bytes);
        match self.host_has_room_for(waiting) {
            true => Ok(self.has_room_for(waiting)),
            false => Err(self.host_full()),
        }
    }

    fn has_room_for(&self, waiting: u64) -> bool {
        waiting <= self.space.room_for_files()
    }

    /// Makes sure that a checkpoint fits into the log with `bytes` more: without one, nothing can be changed once the log
    /// is full, and no mount can write either.
    ///
    /// # Errors
    /// [`Error::MetadataFull`].
    pub fn may_grow(&mut self, bytes: u64) -> Result<()> {
        let room = self.log.room();
        let most = most_metadata(room, self.space.geometry());
        if self.metadata + bytes <= most {
            return Ok(());
        }
        self.measure();
        if self.metadata + bytes > most {
            self.gather();
            self.measure();
        }
        let bytes = self.metadata + bytes;
        match bytes <= most {
            true => Ok(()),
            false => Err(Error::MetadataFull { bytes, room: most }),
        }
    }

    fn measure(&mut self) {
        self.metadata = self.map.checkpoint().len() as u64;
    }

    /// Whether the host's disk has room for `waiting` bytes and the metadata that names them; true if the drive is not
    /// in a file.
    fn host_has_room_for(&mut self, waiting: u64) -> bool {
        let now = self.space.runtime.now();
        if self.space.host.covers(now, waiting) {
            return true;
        }
        let Some(free) = self.space.device.host_free_bytes() else {
            return true;
        };
        let needed = HostRoom::needed(waiting) + self.pending.len() as u64;
        // A checkpoint comes before a frame that the log has no room for.
        if free < needed + self.metadata {
            self.measure();
        }
        let left = free.checked_sub(needed + self.metadata);
        self.space.host =
            left.map_or_else(HostRoom::default, |left| HostRoom::new(now, waiting, left));
        left.is_some()
    }

    /// The error of an append for which the host's disk has no room.
    fn host_full(&self) -> Error {
        let what = "the host's disk has no room for the drive's file to grow";
        Error::Drive(ZoneError::Io {
            command: ZoneCommand::Write,
            at: self.log.next(self.space.geometry()),
            source: Arc::new(io::Error::new(io::ErrorKind::StorageFull, what)),
        })
    }

    /// Bytes that all buffers take on the drive, with `bytes` more.
    fn waiting(&self, bytes: usize) -> u64 {
        let waiting = self.buffers.values().map(Vec::len).chain([bytes]);
        waiting.map(|bytes| self.space.stored(bytes as u64)).sum()
    }

    /// Writes all buffers to extents.
    pub fn write_all_out(&mut self) -> Result<()> {
        let inodes: Vec<u64> = self.buffers.keys().copied().collect();
        let mut result = Ok(());
        for inode in inodes {
            result = result.and(self.write_out(inode, Lifetime::Short));
        }
        result
    }

    /// Writes the buffer of a file to extents. Data that finds no room was never accepted and is dropped.
    pub fn write_out_or_drop(&mut self, inode: u64, lifetime: Lifetime) -> Result<()> {
        let written = self.write_out(inode, lifetime);
        if written.as_ref().is_err_and(Error::is_no_space) {
            self.buffers.remove(&inode);
        }
        written
    }

    /// Writes the buffer of a file to extents.
    pub fn write_out(&mut self, inode: u64, lifetime: Lifetime) -> Result<()> {
        let Some(data) = self.buffers.remove(&inode) else {
            return Ok(());
        };
        let mut done = 0;
        while done < data.len() && self.file(inode).is_some() {
            match self.write_piece(inode, lifetime, &data[done..]) {
                Ok(length) => done += length,
                Err(error) => {
                    // Data that found no space stays in the buffer.
                    self.buffers.insert(inode, data[done..].to_vec());
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn write_piece(&mut self, inode: u64, lifetime: Lifetime, data: &[u8]) -> Result<usize> {
        let limit = self.space.geometry().max_active_zones;
        let mut stream = Stream::of(lifetime, limit);
        let file_offset = self.file(inode).map_or(0, |file| file.size);
        let piece = loop {
            match self.space.put(stream, inode, file_offset, data) {
                Err(Error::NoSpace) => match self.make_space() {
                    // If there is no zone, the rest of another stream's zone is used.
                    Err(Error::NoSpace) => {
                        stream = self.space.with_room().ok_or(Error::NoSpace)?;
                    }
                    made => made?,
                },
                piece => break piece?,
            }
        };
        let length = piece.length as usize;
        // A deleted file has no name after a crash, so no frame records its pieces.
        if let Some(orphan) = self.orphans.get_mut(&inode) {
            orphan.append(piece);
        } else {
            self.change(Operation::Append { inode, piece });
        }
        Ok(length)
    }
}
