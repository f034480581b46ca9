//! A model of the file system that takes the same steps, and what a crash may leave of it.
//!
//! Names change in order: a crash leaves the names after some step between the last barrier and the last step. A file's
//! content is a prefix of one of its earlier contents, not shorter than at any time since its last sync.

use super::read;
use super::step::NAMES;
use bluefs::BlueFs;
use std::collections::BTreeMap;

#[derive(Clone, Default, Debug)]
pub(super) struct File {
    /// The content at the last sync and after each change since then.
    pub versions: Vec<Vec<u8>>,
    pub created_at: usize,
    /// Distinguishes the bytes of this file from those of all others.
    pub stream: u64,
}

#[derive(Default)]
pub struct Model {
    /// The names, with indices into `files`, after each step.
    pub(super) names: Vec<BTreeMap<String, usize>>,
    pub(super) files: Vec<File>,
    pub(super) barrier: usize,
    pub(super) next_stream: u64,
}

impl Model {
    pub fn new() -> Self {
        Self {
            names: vec![BTreeMap::new()],
            ..Self::default()
        }
    }

    pub(super) fn now(&self) -> &BTreeMap<String, usize> {
        self.names.last().unwrap()
    }

    pub(super) fn content(&self, file: usize) -> &Vec<u8> {
        self.files[file].versions.last().unwrap()
    }

    /// Why `fs` cannot be what a crash now leaves; `None` if it can.
    pub fn contradiction(&self, fs: &BlueFs) -> Option<String> {
        let mut found: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        for (directory, prefix) in [("/", "/"), ("/d", "/d/")] {
            let Ok(names) = fs.list(directory) else {
                continue;
            };
            for name in names.iter().filter(|n| *n != "d") {
                let path = format!("{prefix}{name}");
                match read(fs, &path) {
                    Ok(data) => drop(found.insert(path, data)),
                    Err(error) => return Some(format!("{path} cannot be read: {error}")),
                }
            }
        }
        let mut why = Vec::new();
        for at in self.barrier..self.names.len() {
            match self.differs(at, &found) {
                None => return None,
                Some(reason) => why.push(format!("step {at}: {reason}")),
            }
        }
        Some(format!("barrier {}: {}", self.barrier, why.join("; ")))
    }

    fn differs(&self, at: usize, found: &BTreeMap<String, Vec<u8>>) -> Option<String> {
        let names = &self.names[at];
        if !names.keys().eq(found.keys()) {
            let found: Vec<_> = found.keys().collect();
            return Some(format!(
                "names {found:?}, not {:?}",
                names.keys().collect::<Vec<_>>()
            ));
        }
        for (name, file) in names {
            let (data, file) = (&found[name], &self.files[*file]);
            let mut least = usize::MAX;
            let fits = file.versions.iter().any(|version| {
                least = least.min(version.len());
                data.len() >= least && version.starts_with(data)
            });
            if !fits {
                let lengths: Vec<_> = file.versions.iter().map(Vec::len).collect();
                let last = file.versions.last().unwrap();
                let same = last.iter().zip(data).take_while(|(a, b)| a == b).count();
                return Some(format!(
                    "{name} has {} bytes, versions {lengths:?}, the first {same} are right",
                    data.len()
                ));
            }
        }
        None
    }

    /// Makes the model equal to what a crash left, which is durable from then on.
    pub(super) fn adopt(&mut self, fs: &BlueFs) {
        let mut names = BTreeMap::new();
        // Hard links are recognized by their inode.
        let mut by_inode = BTreeMap::new();
        let mut files = Vec::new();
        for path in NAMES {
            let Ok(metadata) = fs.metadata(path) else {
                continue;
            };
            let file = *by_inode.entry(metadata.inode).or_insert_with(|| {
                files.push(File {
                    versions: vec![read(fs, path).unwrap()],
                    created_at: 0,
                    stream: self.next_stream,
                });
                self.next_stream += 1;
                files.len() - 1
            });
            names.insert(path.to_owned(), file);
        }
        self.files = files;
        self.names = vec![names];
        self.barrier = 0;
    }
}

/// Bytes of stream `stream` from `offset` on.
pub(super) fn bytes(stream: u64, offset: usize, length: usize) -> Vec<u8> {
    (offset..offset + length)
        .map(|i| {
            let mut x = (stream << 32) ^ (i as u64);
            x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (x ^ (x >> 31)) as u8
        })
        .collect()
}
