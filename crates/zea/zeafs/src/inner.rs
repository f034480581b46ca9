//! What one lock guards: the map, what is not committed of it, buffers, and the zones.

use crate::area::MetadataLog;
use crate::error::{Error, Result};
use crate::file_map::{File, FileMap};
use crate::format::operation::{Operation, Piece};
use crate::space::Space;
use crate::streams::{Lifetime, Stream};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Inner {
    pub map: FileMap,
    /// What the next frame says, encoded.
    pub pending: Vec<u8>,
    /// Pieces that nobody has any more once the next frame is durable.
    pub doomed: Vec<Piece>,
    /// The same of frames that are written, each with the flush that makes them durable.
    pub leaving: VecDeque<(u64, Piece)>,
    pub log: MetadataLog,
    pub space: Space,
    /// By inode: bytes of files that are in no extent yet.
    pub buffers: BTreeMap<u64, Vec<u8>>,
    /// By inode: how many readers there are.
    pub readers: BTreeMap<u64, u32>,
    /// Files that are gone and are still read.
    pub orphans: BTreeMap<u64, File>,
    pub locks: BTreeSet<String>,
    /// Bytes that were moved to gain zones, since the mount.
    pub moved_bytes: u64,
    /// Why nothing is taken any more.
    pub stopped: Option<String>,
}

impl Inner {
    /// Nothing is changed once metadata could not be written.
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

    /// The file, also one that is gone and still read.
    pub fn file(&self, inode: u64) -> Option<&File> {
        self.map
            .files
            .get(&inode)
            .or_else(|| self.orphans.get(&inode))
    }

    /// Bytes of a file, those in its buffer among them.
    pub fn size(&self, inode: u64) -> u64 {
        let buffered = self.buffers.get(&inode).map_or(0, Vec::len) as u64;
        self.file(inode).map_or(0, |file| file.size) + buffered
    }

    /// Changes the map, and has the next frame say so.
    pub fn change(&mut self, operation: Operation) {
        let mut encoded = Vec::new();
        operation.encode(&mut encoded);
        // A file that its change takes away stays for its readers.
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

    /// A reader is gone, and with the last one of a file that was removed, the file.
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

    /// Whether so many bytes more may wait in memory: there is room for them and all that does. Where that is not certain,
    /// what waits is written out first, so that nothing that was taken lacks what is taken now.
    pub fn may_wait(&mut self, bytes: usize) -> Result<bool> {
        if self.has_room_for(bytes) {
            return Ok(true);
        }
        self.write_all_out()?;
        Ok(self.has_room_for(bytes))
    }

    fn has_room_for(&self, bytes: usize) -> bool {
        let waiting = self.buffers.values().map(Vec::len).chain([bytes]);
        let stored = waiting.map(|bytes| self.space.stored(bytes as u64));
        stored.sum::<u64>() <= self.space.room_for_files()
    }

    /// Puts all that is buffered into extents.
    pub fn write_all_out(&mut self) -> Result<()> {
        let inodes: Vec<u64> = self.buffers.keys().copied().collect();
        let mut result = Ok(());
        for inode in inodes {
            result = result.and(self.write_out(inode, Lifetime::Short));
        }
        result
    }

    /// Puts what is buffered of a file into extents. What finds no room was never taken, and goes.
    pub fn write_out_or_drop(&mut self, inode: u64, lifetime: Lifetime) -> Result<()> {
        let written = self.write_out(inode, lifetime);
        if matches!(written, Err(Error::NoSpace)) {
            self.buffers.remove(&inode);
        }
        written
    }

    /// Puts what is buffered of a file into extents.
    pub fn write_out(&mut self, inode: u64, lifetime: Lifetime) -> Result<()> {
        let Some(data) = self.buffers.remove(&inode) else {
            return Ok(());
        };
        let mut done = 0;
        while done < data.len() && self.file(inode).is_some() {
            match self.write_piece(inode, lifetime, &data[done..]) {
                Ok(length) => done += length,
                Err(error) => {
                    // What found no place is still the file's.
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
                    // What another stream has left is better than nothing.
                    Err(Error::NoSpace) => {
                        stream = self.space.with_room().ok_or(Error::NoSpace)?;
                    }
                    made => made?,
                },
                piece => break piece?,
            }
        };
        let length = piece.length as usize;
        // No frame names what nobody finds after a crash.
        if let Some(orphan) = self.orphans.get_mut(&inode) {
            orphan.append(piece);
        } else {
            self.change(Operation::Append { inode, piece });
        }
        Ok(length)
    }
}
