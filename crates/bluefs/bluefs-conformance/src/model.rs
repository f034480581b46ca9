//! The model of the file system: names, and contents that are generated from numbers, so that a file of any size takes
//! no memory.

use super::random::{Random, mix};
use bluefs::{BlueFs, Reader};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes that are generated from one number.
const RUN: u64 = 512;
/// Most bytes that are read at a time for a comparison.
const PIECE: u64 = 300_000;

/// The content of a file, as the numbers from which its bytes are generated.
#[derive(Clone, Debug)]
pub(super) struct Content {
    /// Offset where each stream of bytes begins, and its number; after a truncation the file continues with another
    /// stream.
    streams: Vec<(u64, u64)>,
    length: u64,
}

impl Content {
    /// An empty file whose bytes differ from those of any other `stream`.
    pub fn new(stream: u64) -> Self {
        Self {
            streams: vec![(0, stream)],
            length: 0,
        }
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    /// Extends the file by `length` bytes and returns them.
    pub fn grow(&mut self, length: u64) -> Vec<u8> {
        let from = self.length;
        self.length += length;
        self.bytes(from, length)
    }

    /// Truncates the file; bytes appended from now on are of `stream`.
    pub fn truncate(&mut self, size: u64, stream: u64) {
        self.streams.retain(|(start, _)| *start < size);
        self.streams.push((size, stream));
        self.length = size;
    }

    /// The bytes from `from` on, at most `length` and up to the file's end.
    pub fn bytes(&self, from: u64, length: u64) -> Vec<u8> {
        let end = from.saturating_add(length).min(self.length);
        let mut bytes = Vec::with_capacity(end.saturating_sub(from) as usize);
        let mut next = from;
        while next < end {
            let later = self.streams.partition_point(|(start, _)| *start <= next);
            let (start, stream) = self.streams[later - 1];
            let to = self
                .streams
                .get(later)
                .map_or(end, |(start, _)| end.min(*start));
            fill(&mut bytes, stream, next - start, to - start);
            next = to;
        }
        bytes
    }

    /// Reads the whole file in random pieces and compares it.
    #[track_caller]
    pub fn compare(&self, path: &str, reader: &Reader, random: &mut Random) {
        assert_eq!(reader.size(), self.length, "{path}");
        let mut next = 0;
        while next <= self.length {
            let mut found = vec![0xee; 1 + random.below(PIECE) as usize];
            let got = reader.read_at(next, &mut found).unwrap();
            let expected = self.bytes(next, found.len() as u64);
            assert!(found[..got] == expected, "{path} at {next}");
            next += found.len() as u64;
        }
    }
}

/// Appends the bytes `from..to` of a stream.
fn fill(bytes: &mut Vec<u8>, stream: u64, from: u64, to: u64) {
    let start = from / RUN * RUN;
    let mut words = Vec::with_capacity((to - start).next_multiple_of(RUN) as usize);
    for run in (start..to).step_by(RUN as usize) {
        let mut word = mix(mix(stream) ^ run);
        for _ in 0..RUN / 8 {
            words.extend_from_slice(&word.to_le_bytes());
            word = word.wrapping_add(0x0123_4567_89ab_cdef);
        }
    }
    bytes.extend_from_slice(&words[(from - start) as usize..(to - start) as usize]);
}

/// Directories, names, and the contents that the names lead to.
#[derive(Default)]
pub(super) struct Tree {
    directories: BTreeSet<String>,
    names: BTreeMap<String, u64>,
    contents: BTreeMap<u64, Content>,
    next: u64,
}

impl Tree {
    /// The content of a new, empty file.
    pub fn new_content(&mut self) -> Content {
        Content::new(self.new_stream())
    }

    pub fn new_stream(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Sets the content of a file; a file of that name is replaced.
    pub fn insert(&mut self, path: &str, content: Content) {
        self.remove(path);
        let file = self.new_stream();
        self.names.insert(path.to_owned(), file);
        self.contents.insert(file, content);
    }

    pub fn link(&mut self, from: &str, to: &str) {
        self.names.insert(to.to_owned(), self.names[from]);
    }

    /// Renames a file; a file of the new name is replaced.
    pub fn rename(&mut self, from: &str, to: &str) {
        let file = self.names[from];
        self.remove(to);
        self.names.remove(from);
        self.names.insert(to.to_owned(), file);
    }

    /// Renames a directory, with everything in it.
    pub fn rename_directory(&mut self, from: &str, to: &str) {
        let moved = |path: &str| match path.strip_prefix(from) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{to}{rest}"),
            _ => path.to_owned(),
        };
        self.directories = self.directories.iter().map(|path| moved(path)).collect();
        let names = std::mem::take(&mut self.names).into_iter();
        self.names = names.map(|(path, file)| (moved(&path), file)).collect();
    }

    pub fn remove(&mut self, path: &str) {
        if let Some(file) = self.names.remove(path)
            && !self.names.values().any(|other| *other == file)
        {
            self.contents.remove(&file);
        }
    }

    pub fn directory(&mut self, path: &str) {
        self.directories.insert(path.to_owned());
    }

    pub fn remove_directory(&mut self, path: &str) {
        self.directories.remove(path);
    }

    pub fn content(&mut self, path: &str) -> &mut Content {
        self.contents.get_mut(&self.names[path]).unwrap()
    }

    pub fn files(&self) -> u64 {
        self.contents.len() as u64
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.contents.values().map(Content::length).sum()
    }

    /// Checks that the file system has exactly these names and bytes.
    #[track_caller]
    pub fn compare(&self, fs: &BlueFs, random: &mut Random) {
        let root = String::new();
        for directory in self.directories.iter().chain([&root]) {
            let inside = |path: &&String| {
                let name = path.strip_prefix(directory.as_str());
                let name = name.and_then(|rest| rest.strip_prefix('/'));
                name.filter(|name| !name.contains('/')).map(str::to_owned)
            };
            let all = self.names.keys().chain(&self.directories);
            let mut expected: Vec<String> = all.filter_map(|path| inside(&path)).collect();
            expected.sort();
            let found = fs.list(&format!("{directory}/")).unwrap();
            assert_eq!(found, expected, "in {directory}/");
        }
        for (path, file) in &self.names {
            let links = self.names.values().filter(|other| *other == file).count();
            let metadata = fs.metadata(path).unwrap();
            assert_eq!(metadata.links as usize, links, "{path}");
            self.contents[file].compare(path, &fs.open(path).unwrap(), random);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_the_same_in_any_pieces_and_others_after_a_cut() {
        let mut content = Content::new(7);
        let mut all = content.grow(1000);
        all.extend(content.grow(3));
        all.extend(content.grow(2000));
        assert_eq!(content.bytes(0, 3003), all);
        for (from, length) in [
            (0, 1),
            (511, 2),
            (1000, 600),
            (3002, 1),
            (3003, 5),
            (9000, 1),
        ] {
            let end = 3003.min(from + length).max(from.min(3003));
            assert_eq!(
                content.bytes(from as u64, length as u64),
                all[from.min(3003)..end]
            );
        }
        content.truncate(1500, 8);
        content.grow(1503);
        assert_eq!(content.bytes(0, 1500), all[..1500]);
        assert_ne!(content.bytes(1500, 8), all[1500..1508]);
        assert_ne!(Content::new(9).grow(8), Content::new(10).grow(8));
    }
}
