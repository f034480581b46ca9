//! Small drives with a file system, and the model with which histories of files are compared.
//!
//! A crash leaves the names after some step between the last barrier and the last step. It leaves of each file a prefix
//! of one of its contents since its last sync, not shorter than the shortest of the contents up to that one.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use device::ZonedDevice;
use runtime::Runtime;
use std::collections::BTreeMap;
use std::sync::Arc;
use zeafs::{Error, Lifetime, Writer, ZeaFs};
use zone::{Geometry, ZoneKind};

/// Bytes of a file that wait in memory before they are written: few, so that files have many extents.
pub const BUFFER: usize = 1800;

pub const NAMES: [&str; 6] = [
    "db/CURRENT",
    "db/000001.log",
    "db/000002.ldb",
    "db/3",
    "x",
    "db/LOG",
];

/// Small zones and blocks, so that files spread over many zones.
pub fn geometry(sequential: u32, conventional_zones: u32, max_active_zones: u32) -> Geometry {
    Geometry {
        block_size: 512,
        zone_size: 32 << 10,
        zone_capacity: 24 << 10,
        zone_count: sequential + conventional_zones,
        conventional_zones,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: max_active_zones,
        max_active_zones,
        max_append_bytes: 0,
    }
}

pub fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(default)
}

pub fn format(device: &dyn ZonedDevice) {
    ZeaFs::format(device, [3; 16], false).unwrap();
}

pub fn mount(device: Arc<dyn ZonedDevice>) -> Result<ZeaFs, Error> {
    ZeaFs::mount_with(device, Runtime::seeded(1), BUFFER)
}

pub fn read(fs: &ZeaFs, name: &str) -> Result<Vec<u8>, Error> {
    let reader = fs.open(name)?;
    let mut data = vec![0; reader.size() as usize + 7];
    let got = reader.read_at(0, &mut data)?;
    data.truncate(got);
    assert_eq!(got as u64, reader.size());
    Ok(data)
}

pub fn write(fs: &ZeaFs, name: &str, data: &[u8]) -> Result<(), Error> {
    let mut writer = fs.create(name)?;
    writer.append(data)?;
    writer.sync()
}

/// `length` pseudo-random bytes that depend on `stream`.
pub fn bytes(stream: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fastrand::Rng::with_seed(stream).fill(&mut bytes);
    bytes
}

#[derive(Clone, Copy, Debug)]
pub enum Step {
    Create(usize),
    Append(usize, usize),
    Sync(usize),
    Close(usize),
    Delete(usize),
    Rename(usize, usize),
    /// To this many bytes, modulo one more than the file's length.
    Truncate(usize, u64),
    SyncNames,
    /// Unmounts and mounts.
    Remount,
    /// Mounts again without an unmount.
    Kill,
}

#[derive(Clone, Debug)]
pub struct File {
    /// The contents at the last sync and after each change since then.
    pub versions: Vec<Vec<u8>>,
    created_at: usize,
}

#[derive(Clone, Debug)]
pub struct Model {
    /// The names, with indices into `files`, after each step.
    pub names: Vec<BTreeMap<String, usize>>,
    pub files: Vec<File>,
    pub barrier: usize,
    next_stream: u64,
}

impl Model {
    pub fn new() -> Self {
        Self {
            names: vec![BTreeMap::new()],
            files: Vec::new(),
            barrier: 0,
            next_stream: 1,
        }
    }

    fn now(&self) -> &BTreeMap<String, usize> {
        self.names.last().unwrap()
    }

    fn content(&self, file: usize) -> &Vec<u8> {
        self.files[file].versions.last().unwrap()
    }

    /// Why the file system cannot be what a crash left; `None` if it can.
    pub fn contradiction(&self, fs: &ZeaFs) -> Option<String> {
        let mut found = BTreeMap::new();
        for name in fs.list("") {
            match read(fs, &name) {
                Ok(data) => found.insert(name, data),
                Err(error) => return Some(format!("{name} cannot be read: {error}")),
            };
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
            return Some(format!("names {found:?}, not {:?}", names.keys()));
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
                return Some(format!(
                    "{name} has {} bytes, versions {lengths:?}",
                    data.len()
                ));
            }
        }
        None
    }

    /// Asserts that the file system is exactly as the last step left it.
    pub fn assert_now(&self, fs: &ZeaFs) -> Result<(), Error> {
        let names: Vec<String> = self.now().keys().cloned().collect();
        assert_eq!(fs.list(""), names);
        for (name, file) in self.now() {
            assert!(read(fs, name)? == *self.content(*file), "{name}");
        }
        Ok(())
    }

    /// Makes the model equal to what a crash left, which is durable from then on.
    fn adopt(&mut self, fs: &ZeaFs) {
        let mut names = BTreeMap::new();
        let mut files = Vec::new();
        for name in fs.list("") {
            names.insert(name.clone(), files.len());
            files.push(File {
                versions: vec![read(fs, &name).unwrap()],
                created_at: 0,
            });
        }
        (self.names, self.files, self.barrier) = (vec![names], files, 0);
    }

    /// All names, and all data that was written out, are durable.
    fn all_synced(&mut self) {
        self.barrier = self.names.len() - 1;
    }

    fn synced(&mut self, file: usize) {
        let versions = &mut self.files[file].versions;
        let last = versions.len() - 1;
        versions.drain(..last);
    }
}

/// The file system and its model, side by side.
pub struct Pair {
    pub device: Arc<dyn ZonedDevice>,
    pub fs: ZeaFs,
    pub model: Model,
    writers: BTreeMap<usize, Writer>,
}

impl Pair {
    pub fn new(device: Arc<dyn ZonedDevice>) -> Result<Self, Error> {
        Ok(Self {
            fs: mount(device.clone())?,
            device,
            model: Model::new(),
            writers: BTreeMap::new(),
        })
    }

    fn writer(&mut self, file: usize, name: &str) -> Result<&mut Writer, Error> {
        if !self.writers.contains_key(&file) {
            let writer = self.fs.reopen(name)?;
            self.writers.insert(file, writer);
        }
        Ok(self.writers.get_mut(&file).unwrap())
    }

    /// Takes a step in both. If it fails, the model has it nevertheless, for it may have happened.
    pub fn step(&mut self, step: Step) -> Result<(), Error> {
        let at = self.model.names.len();
        let mut names = self.model.now().clone();
        let found = |index: usize| self.model.now().get(NAMES[index]).copied();
        match step {
            Step::Create(f) => {
                self.model.files.push(File {
                    versions: vec![Vec::new()],
                    created_at: at,
                });
                let file = self.model.files.len() - 1;
                names.insert(NAMES[f].to_owned(), file);
                self.model.names.push(names);
                let mut writer = self.fs.create(NAMES[f])?;
                writer.set_lifetime([Lifetime::Short, Lifetime::Long][f % 2]);
                self.writers.insert(file, writer);
                Ok(())
            }
            Step::Append(f, length) => {
                let Some(file) = found(f) else { return Ok(()) };
                let data = bytes(self.model.next_stream, length);
                self.model.next_stream += 1;
                let mut content = self.model.content(file).clone();
                content.extend_from_slice(&data);
                self.model.files[file].versions.push(content);
                self.writer(file, NAMES[f])?.append(&data)
            }
            Step::Sync(f) => {
                let Some(file) = found(f) else { return Ok(()) };
                self.writer(file, NAMES[f])?.sync()?;
                self.model.synced(file);
                self.model.all_synced();
                Ok(())
            }
            Step::Close(f) => {
                let Some(file) = found(f) else { return Ok(()) };
                match self.writers.remove(&file) {
                    Some(mut writer) => writer.close(),
                    None => Ok(()),
                }
            }
            Step::Delete(f) => {
                if names.remove(NAMES[f]).is_none() {
                    let missing = self.fs.delete(NAMES[f]);
                    assert!(matches!(missing, Err(Error::NotFound { .. })));
                    return Ok(());
                }
                self.model.names.push(names);
                self.fs.delete(NAMES[f])
            }
            Step::Rename(f, g) => {
                let Some(file) = names.remove(NAMES[f]) else {
                    return Ok(());
                };
                names.insert(NAMES[g].to_owned(), file);
                self.model.names.push(names);
                self.fs.rename(NAMES[f], NAMES[g])
            }
            Step::Truncate(f, size) => {
                let Some(file) = found(f) else { return Ok(()) };
                let mut content = self.model.content(file).clone();
                let size = size % (content.len() as u64 + 1);
                content.truncate(size as usize);
                self.model.files[file].versions.push(content);
                self.writer(file, NAMES[f])?.truncate(size)
            }
            Step::SyncNames => {
                self.fs.sync_metadata()?;
                self.model.all_synced();
                Ok(())
            }
            Step::Remount => {
                self.writers.clear();
                self.fs.unmount()?;
                for file in 0..self.model.files.len() {
                    self.model.synced(file);
                }
                self.model.all_synced();
                self.fs = mount(self.device.clone())?;
                self.model.assert_now(&self.fs)
            }
            Step::Kill => {
                for (_, writer) in std::mem::take(&mut self.writers) {
                    // The bytes that wait in the process's memory are lost with it.
                    std::mem::forget(writer);
                }
                self.fs = mount(self.device.clone())?;
                // The power may have been cut at the mount's last command.
                for name in self.fs.list("") {
                    read(&self.fs, &name)?;
                }
                let why = self.model.contradiction(&self.fs);
                assert!(why.is_none(), "{why:?}");
                self.model.adopt(&self.fs);
                Ok(())
            }
        }
    }
}
