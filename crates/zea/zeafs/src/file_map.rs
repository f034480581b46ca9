//! Names, and where files lie: what frames say, applied. Pure.

use crate::format::operation::{Operation, Piece};
use std::collections::BTreeMap;

/// A file.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct File {
    /// In the order of the file, without gaps. A truncate may have left more in one than the file has of it.
    pub pieces: Vec<Piece>,
    /// Bytes of the file that are in pieces.
    pub size: u64,
}

impl File {
    /// Where the bytes of a piece end in the file: at the next one, or at the file's end. A truncate may have left
    /// more in it.
    pub fn end_of(&self, place: usize) -> u64 {
        self.pieces
            .get(place + 1)
            .map_or(self.size, |next| next.file_offset)
    }

    /// A piece behind all others. Its offset is the file's size.
    pub fn append(&mut self, piece: Piece) {
        self.size = piece.file_offset + piece.length;
        self.pieces.push(piece);
    }

    /// The whole pieces from `file_offset` on that `to` has the bytes of lie there now; answers those that do not
    /// count any more.
    pub fn relocate(
        &mut self,
        file_offset: u64,
        to: Vec<Piece>,
    ) -> Result<Vec<Piece>, Contradiction> {
        let first = self
            .pieces
            .binary_search_by_key(&file_offset, |piece| piece.file_offset);
        let first = first.map_err(|_| Contradiction)?;
        let mut end = file_offset;
        for piece in &to {
            if piece.file_offset != end {
                return Err(Contradiction);
            }
            end = end.checked_add(piece.length).ok_or(Contradiction)?;
        }
        let last = (first..self.pieces.len()).find(|place| self.end_of(*place) == end);
        let last = last.ok_or(Contradiction)?;
        Ok(self.pieces.splice(first..=last, to).collect())
    }
}

/// All names and files.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FileMap {
    pub names: BTreeMap<String, u64>,
    pub files: BTreeMap<u64, File>,
    pub next_inode: u64,
}

/// An operation that does not go with what was before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contradiction;

impl FileMap {
    /// Applies a change; answers the pieces that no file has any more.
    pub fn apply(&mut self, operation: Operation) -> Result<Vec<Piece>, Contradiction> {
        match operation {
            Operation::Create { inode, name } => {
                let next = inode.checked_add(1).ok_or(Contradiction)?;
                if self.files.contains_key(&inode) {
                    return Err(Contradiction);
                }
                self.next_inode = self.next_inode.max(next);
                self.files.insert(inode, File::default());
                let before = self.names.insert(name, inode);
                Ok(self.drop_file(before))
            }
            Operation::Remove { name } => {
                let inode = self.names.remove(&name).ok_or(Contradiction)?;
                Ok(self.drop_file(Some(inode)))
            }
            Operation::Rename { from, to } => {
                let inode = self.names.remove(&from).ok_or(Contradiction)?;
                let before = self.names.insert(to, inode);
                Ok(self.drop_file(before.filter(|before| *before != inode)))
            }
            Operation::Append { inode, piece } => {
                let file = self.files.get_mut(&inode).ok_or(Contradiction)?;
                let end = piece.file_offset.checked_add(piece.length);
                if piece.file_offset != file.size || end.is_none() {
                    return Err(Contradiction);
                }
                file.append(piece);
                Ok(Vec::new())
            }
            Operation::Truncate { inode, size } => {
                let file = self.files.get_mut(&inode).ok_or(Contradiction)?;
                if size > file.size {
                    return Err(Contradiction);
                }
                file.size = size;
                let kept = file
                    .pieces
                    .partition_point(|piece| piece.file_offset < size);
                // What is left of the last one is verified by its checksums, so it stays as it is.
                Ok(file.pieces.split_off(kept))
            }
            Operation::Move {
                inode,
                file_offset,
                to,
            } => {
                let file = self.files.get_mut(&inode).ok_or(Contradiction)?;
                file.relocate(file_offset, to)
            }
        }
    }

    /// All pieces, with the inode of each.
    pub fn pieces(&self) -> impl Iterator<Item = (u64, &Piece)> {
        let files = self.files.iter();
        files.flat_map(|(inode, file)| file.pieces.iter().map(|piece| (*inode, piece)))
    }

    fn drop_file(&mut self, inode: Option<u64>) -> Vec<Piece> {
        let file = inode.and_then(|inode| self.files.remove(&inode));
        file.map_or_else(Vec::new, |file| file.pieces)
    }

    /// Operations that make this map of an empty one.
    pub fn checkpoint(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (name, inode) in &self.names {
            let (name, inode) = (name.clone(), *inode);
            Operation::Create { inode, name }.encode(&mut out);
            let Some(file) = self.files.get(&inode) else {
                continue;
            };
            for (place, piece) in file.pieces.iter().enumerate() {
                let (end, size) = (piece.file_offset + piece.length, file.end_of(place));
                let piece = piece.clone();
                Operation::Append { inode, piece }.encode(&mut out);
                if size < end {
                    Operation::Truncate { inode, size }.encode(&mut out);
                }
            }
        }
        out
    }
}
