//! The names, and the pieces of each file: the state that results from the operations in frames. Pure.

use crate::format::operation::{Operation, Piece};
use std::collections::BTreeMap;

/// The pieces of a file, and its size.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct File {
    /// In file order, without gaps. After a truncate, a piece may hold more bytes than the file has of it.
    pub pieces: Vec<Piece>,
    /// Size of the file in bytes, without buffered data.
    pub size: u64,
}

impl File {
    /// The end of a piece in the file: the offset of the next piece, or the file's size. After a truncate a
    /// piece may hold more bytes.
    pub fn end_of(&self, place: usize) -> u64 {
        self.pieces
            .get(place + 1)
            .map_or(self.size, |next| next.file_offset)
    }

    /// Appends a piece. Its file offset must be the file's size.
    pub fn append(&mut self, piece: Piece) {
        self.size = piece.file_offset + piece.length;
        self.pieces.push(piece);
    }

    /// Replaces the pieces from `file_offset` on whose bytes `to` holds; returns the replaced ones.
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

/// An operation that is not possible in the present state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contradiction;

impl FileMap {
    /// Applies a change; returns the pieces that belong to no file any more.
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
                // The last piece stays whole even if only a part remains: its checksums cover whole chunks.
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

    /// Encodes operations that build this map from an empty one.
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
