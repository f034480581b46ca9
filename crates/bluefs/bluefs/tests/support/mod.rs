//! A plain model of the file system, driven side by side with the real one, and what may be left
//! of it after a crash.
//!
//! Names change in order: what a crash leaves is the namespace after some step between the last
//! barrier and the last step. A file's content is a prefix of what it was, not shorter than it
//! was at any time since its last sync.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use bluefs::{BlueFs, Cleaning, Error, FormatOptions, Lifetime, MountOptions, Role, Writer};
use device::ZonedDevice;
use runtime::Runtime;
use std::collections::BTreeMap;
use std::sync::Arc;
use zone::{Geometry, ZoneId, ZoneKind};
use zone_alloc::ZonePool;

/// 0, or what `ZONESTORE_SEED` says: other states, cases and histories.
pub fn seed() -> u64 {
    let given = std::env::var("ZONESTORE_SEED").ok();
    given.map_or(0, |seed| seed.parse().unwrap())
}

/// Small zones and blocks, so that zones change often.
pub fn geometry(zone_count: u32, conventional_zones: u32, max_active_zones: u32) -> Geometry {
    Geometry {
        block_size: 512,
        zone_size: 32 << 10,
        zone_capacity: 24 << 10,
        zone_count,
        conventional_zones,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: max_active_zones,
        max_active_zones,
        max_append_bytes: 0,
    }
}

pub fn format(device: &dyn ZonedDevice, role: Role) {
    let options = FormatOptions {
        uuid: [3; 16],
        role,
        force: false,
    };
    BlueFs::format(device, &options).unwrap();
}

pub fn pool(device: &dyn ZonedDevice) -> Arc<ZonePool> {
    let g = device.geometry();
    let report = device.report(ZoneId(0), g.zone_count).unwrap();
    Arc::new(ZonePool::new(g.clone(), &report))
}

/// A step of cleaning ahead of need moves whatever is worth it, when it is asked to.
pub const ALWAYS: Cleaning = Cleaning {
    in_background: false,
    percent: 100_000,
    tidy_per_mille: 0,
    begin_below: Some(u32::MAX),
};

pub fn mount(device: Arc<dyn ZonedDevice>) -> Result<BlueFs, Error> {
    let pool = pool(&*device);
    mount_in(device, pool, false)
}

pub fn mount_in(
    device: Arc<dyn ZonedDevice>,
    pool: Arc<ZonePool>,
    read_only: bool,
) -> Result<BlueFs, Error> {
    BlueFs::mount(
        device,
        pool,
        MountOptions {
            read_only,
            accept_damage: read_only,
            runtime: Runtime::seeded(0),
            cleaning: Some(ALWAYS),
            ..MountOptions::default()
        },
    )
}

pub fn read(fs: &BlueFs, path: &str) -> Result<Vec<u8>, Error> {
    let reader = fs.open(path)?;
    let mut data = vec![0; reader.size() as usize];
    let got = reader.read_at(0, &mut data)?;
    assert_eq!(got, data.len());
    Ok(data)
}

#[track_caller]
pub fn assert_clean(fs: &BlueFs) {
    let report = fs.check(true).unwrap();
    assert!(report.is_clean(), "{:#?}", report.details);
}

pub const NAMES: [&str; 6] = [
    "/a.sst",
    "/000001.log",
    "/d/b.sst",
    "/d/000002.log",
    "/MANIFEST-000003",
    "/d/CURRENT",
];

/// One step; files are indices into [`NAMES`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    Create(usize),
    Append(usize, usize),
    Sync(usize),
    RangeSync(usize),
    Close(usize),
    Delete(usize),
    Rename(usize, usize),
    Link(usize, usize),
    Truncate(usize, usize),
    SyncNames,
    /// Reads a random part of a file that is perhaps being written.
    Read(usize, usize),
    /// Moves what is live in one zone elsewhere, if that is worth it.
    Clean,
    /// Unmount and mount.
    Remount,
    /// Mount again without having unmounted; nothing is lost of what the drive was told.
    Kill,
}

#[derive(Clone, Default, Debug)]
struct File {
    /// The content after each change since (and including) the last sync.
    versions: Vec<Vec<u8>>,
    created_at: usize,
    /// Distinguishes the bytes of this file from those of all others.
    stream: u64,
}

/// The model.
#[derive(Default)]
pub struct Model {
    /// Names after each step.
    names: Vec<BTreeMap<String, usize>>,
    files: Vec<File>,
    barrier: usize,
    next_stream: u64,
}

impl Model {
    pub fn new() -> Self {
        Self {
            names: vec![BTreeMap::new()],
            ..Self::default()
        }
    }

    fn now(&self) -> &BTreeMap<String, usize> {
        self.names.last().unwrap()
    }

    fn content(&self, file: usize) -> &Vec<u8> {
        self.files[file].versions.last().unwrap()
    }

    /// Why `fs` is nothing that a crash now may leave.
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

    /// Takes over what a crash left: it is durable now.
    fn adopt(&mut self, fs: &BlueFs) {
        let mut names = BTreeMap::new();
        // Links stay links: told apart by inode.
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

/// The byte at `offset` of stream `stream`.
fn bytes(stream: u64, offset: usize, length: usize) -> Vec<u8> {
    (offset..offset + length)
        .map(|i| {
            let mut x = (stream << 32) ^ (i as u64);
            x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (x ^ (x >> 31)) as u8
        })
        .collect()
}

/// The real file system and its model, step by step.
pub struct Pair<D> {
    pub device: Arc<D>,
    pub fs: BlueFs,
    pub model: Model,
    writers: BTreeMap<usize, Writer>,
}

impl<D: ZonedDevice + 'static> Pair<D> {
    /// On a drive that has been formatted.
    pub fn new(device: Arc<D>) -> Result<Self, Error> {
        let fs = mount(device.clone())?;
        if !fs.exists("/d") {
            fs.create_directory("/d")?;
            fs.sync_metadata()?;
        }
        Ok(Self {
            device,
            fs,
            model: Model::new(),
            writers: BTreeMap::new(),
        })
    }

    fn writer(&mut self, file: usize, path: &str) -> Result<&mut Writer, Error> {
        if !self.writers.contains_key(&file) {
            let writer = self.fs.reopen(path)?;
            self.writers.insert(file, writer);
        }
        Ok(self.writers.get_mut(&file).unwrap())
    }

    /// Takes a step in both. The model is ahead if the step fails: it may have happened.
    pub fn step(&mut self, step: Step) -> Result<(), Error> {
        let at = self.model.names.len();
        let mut names = self.model.now().clone();
        let found =
            |index: usize, names: &BTreeMap<String, usize>| names.get(NAMES[index]).copied();
        match step {
            Step::Create(f) => {
                let stream = self.model.next_stream;
                self.model.next_stream += 1;
                self.model.files.push(File {
                    versions: vec![Vec::new()],
                    created_at: at,
                    stream,
                });
                let file = self.model.files.len() - 1;
                names.insert(NAMES[f].to_owned(), file);
                self.model.names.push(names);
                let mut writer = self.fs.create(NAMES[f])?;
                writer.set_lifetime([Lifetime::Unknown, Lifetime::Medium, Lifetime::Long][f % 3]);
                self.writers.insert(file, writer);
                return Ok(());
            }
            Step::Append(f, length) => {
                let Some(file) = found(f, &names) else {
                    return Ok(());
                };
                let mut content = self.model.content(file).clone();
                let run_id = self.model.next_stream << 20 | self.model.files[file].stream;
                self.model.next_stream += 1;
                let data = bytes(run_id, content.len(), length);
                content.extend_from_slice(&data);
                self.model.files[file].versions.push(content);
                self.writer(file, NAMES[f])?.append(&data)?;
            }
            Step::Sync(f) => {
                let Some(file) = found(f, &names) else {
                    return Ok(());
                };
                self.writer(file, NAMES[f])?.sync()?;
                let entry = &mut self.model.files[file];
                let last = entry.versions.len() - 1;
                entry.versions.drain(..last);
                self.model.barrier = self.model.barrier.max(entry.created_at);
            }
            Step::RangeSync(f) => {
                let Some(file) = found(f, &names) else {
                    return Ok(());
                };
                self.writer(file, NAMES[f])?.range_sync()?;
            }
            Step::Close(f) => {
                let Some(file) = found(f, &names) else {
                    return Ok(());
                };
                if let Some(mut writer) = self.writers.remove(&file) {
                    writer.close()?;
                }
            }
            Step::Delete(f) => {
                if names.remove(NAMES[f]).is_none() {
                    let missing = self.fs.delete(NAMES[f]);
                    assert!(
                        matches!(missing, Err(Error::NotFound { .. })),
                        "{missing:?}"
                    );
                    return Ok(());
                }
                self.model.names.push(names);
                return self.fs.delete(NAMES[f]);
            }
            Step::Rename(f, g) => {
                let Some(file) = found(f, &names) else {
                    return Ok(());
                };
                names.remove(NAMES[f]);
                names.insert(NAMES[g].to_owned(), file);
                self.model.names.push(names);
                return self.fs.rename(NAMES[f], NAMES[g]);
            }
            Step::Link(f, g) => {
                let Some(file) = found(f, &names) else {
                    return Ok(());
                };
                if found(g, &names).is_some() {
                    let taken = self.fs.link(NAMES[f], NAMES[g]);
                    assert!(matches!(taken, Err(Error::Exists { .. })), "{taken:?}");
                    return Ok(());
                }
                names.insert(NAMES[g].to_owned(), file);
                self.model.names.push(names);
                return self.fs.link(NAMES[f], NAMES[g]);
            }
            Step::Truncate(f, size) => {
                let Some(file) = found(f, &names) else {
                    return Ok(());
                };
                let mut content = self.model.content(file).clone();
                let size = size % (content.len() + 1);
                content.truncate(size);
                self.model.files[file].versions.push(content);
                self.writer(file, NAMES[f])?.truncate(size as u64)?;
            }
            Step::SyncNames => {
                self.fs.sync_metadata()?;
                self.model.barrier = self.model.names.len() - 1;
            }
            Step::Read(f, from) => {
                let Some(file) = found(f, &names) else {
                    return Ok(());
                };
                let content = self.model.content(file);
                let from = from % (content.len() + 2);
                let mut buffer = vec![0; 1 + from * 7 % 5000];
                let reader = self.fs.open(NAMES[f])?;
                let got = reader.read_at(from as u64, &mut buffer)?;
                let end = content.len().min(from + buffer.len());
                assert_eq!(
                    &buffer[..got],
                    content.get(from..end).unwrap_or(&[]),
                    "{step:?}"
                );
            }
            Step::Clean => {
                self.fs.clean_ahead()?;
            }
            Step::Remount => {
                for (_, mut writer) in std::mem::take(&mut self.writers) {
                    writer.sync()?;
                    writer.close()?;
                }
                self.fs.unmount()?;
                self.fs = mount(self.device.clone())?;
                for file in &mut self.model.files {
                    let last = file.versions.len() - 1;
                    file.versions.drain(..last);
                }
                self.model.barrier = self.model.names.len() - 1;
                self.verify();
                let (fs, model) = (&self.fs, &mut self.model);
                model.adopt(fs);
            }
            Step::Kill => {
                self.writers.clear();
                self.fs = mount(self.device.clone())?;
                self.verify();
                let (fs, model) = (&self.fs, &mut self.model);
                model.adopt(fs);
            }
        }
        Ok(())
    }

    /// The whole namespace and all contents, and the check.
    #[track_caller]
    pub fn verify(&self) {
        assert_eq!(self.model.contradiction(&self.fs), None);
        assert_clean(&self.fs);
    }

    /// What is there now is exactly what the model says.
    #[track_caller]
    pub fn verify_exactly(&self) {
        for path in NAMES {
            match self.model.now().get(path) {
                Some(file) => {
                    let data = read(&self.fs, path).unwrap();
                    assert!(data == *self.model.content(*file), "{path}");
                }
                None => assert!(!self.fs.exists(path), "{path}"),
            }
        }
    }
}

/// A small generator, so that a seed is a history.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// Manifests and info logs, upper levels, tables of more than half a zone and more than one.
    pub fn size(&mut self) -> u64 {
        1 + match self.below(10) {
            0..=4 => self.below(3_000),
            5..=7 => self.below(20_000),
            _ => 20_000 + self.below(50_000),
        }
    }
}
