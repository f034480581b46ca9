//! Conformance suite for BlueFS on any [`ZonedDevice`]: names, reads at any offset, large and small files, logs over a
//! stop without unmount, a full drive, overwriting that forces zones to be cleaned, many writers at once.
//!
//! One file system is used for all scenarios. A simple model records its names and bytes; after each scenario
//! everything is compared with the model, and the file system is unmounted, mounted again, compared and checked. A
//! deviation panics. The same seed gives the same run.
#![allow(clippy::unwrap_used, clippy::expect_used)] // Test code that other crates run too.

mod logs;
mod model;
mod names;
mod random;
mod reading;
mod space;
mod writers;

use bluefs::{BlueFs, Error, FormatOptions, Lifetime, MountOptions, Result, Role};
use device::ZonedDevice;
use device::part::Part;
use model::{Content, Tree};
use random::Random;
use runtime::Runtime;
use std::sync::Arc;
use zone::{ZoneCondition, ZoneId, ZoneKind};
use zone_alloc::ZonePool;

/// Extent and seed of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Sequential zones of the drive that are used, from the first on. They are filled completely, so this bounds the
    /// time.
    pub zones: u32,
    /// How many times the file system's capacity the overwriting scenario writes.
    pub churn: u32,
    /// Seed of the sequence of operations.
    pub seed: u64,
    /// Identity of the file system. Two runs in a row on one drive must differ in it, because conventional zones keep
    /// their content.
    pub uuid: [u8; 16],
}

impl Default for Options {
    fn default() -> Self {
        Self {
            zones: 24,
            churn: 3,
            seed: 1,
            uuid: [0x5a; 16],
        }
    }
}

/// Conventional zones that are used, if the drive has any.
const CONVENTIONAL: u32 = 4;
/// Bytes of the read cache at every second mount.
const CACHE_BYTES: u64 = 1 << 20;

type Scenario = (&'static str, fn(&mut Suite));

/// The scenarios in the order in which they are run; later ones use files of earlier ones.
const SCENARIOS: [Scenario; 9] = [
    ("names", names::names),
    ("reads anywhere", reading::anywhere),
    ("a file over several zones", reading::large),
    ("many files in a zone", space::small),
    ("logs over a stop without unmount", logs::logs),
    ("many writers at once", writers::writers),
    ("zones cleaned for what is overwritten", space::churn),
    ("no space, and space again", space::full),
    ("for reading only", names::read_only),
];

/// Runs the suite on a drive; all data on it is lost. `done` is called with the name of each finished scenario.
pub fn run_on(device: Arc<dyn ZonedDevice>, options: Options, done: &mut dyn FnMut(&str)) {
    erase(&*device);
    let part = Part::around_first_sequential(device.clone(), CONVENTIONAL, options.zones).unwrap();
    let mut suite = Suite::new(Arc::new(part), options);
    for (name, scenario) in SCENARIOS {
        scenario(&mut suite);
        suite.rest();
        done(name);
    }
    suite.end();
    erase(&*device);
}

/// Resets every sequential zone that is not empty, including unused ones, which would count among the active ones.
fn erase(device: &dyn ZonedDevice) {
    let rests = [
        ZoneCondition::NotWritePointer,
        ZoneCondition::Empty,
        ZoneCondition::ReadOnly,
        ZoneCondition::Offline,
    ];
    for zone in device.report(ZoneId(0), u32::MAX).unwrap() {
        if !rests.contains(&zone.condition) {
            device.reset(zone.id).unwrap();
        }
    }
}

/// The file system under test, with its model.
struct Suite {
    device: Arc<dyn ZonedDevice>,
    fs: BlueFs,
    tree: Tree,
    random: Random,
    options: Options,
    mounts: u64,
}

const LIFETIMES: [Lifetime; 4] = [
    Lifetime::Short,
    Lifetime::Medium,
    Lifetime::Long,
    Lifetime::Extreme,
];

impl Suite {
    fn new(device: Arc<dyn ZonedDevice>, options: Options) -> Self {
        let format = FormatOptions {
            uuid: options.uuid,
            role: Role::Alone,
            copies: 1,
            // Conventional zones keep their content.
            force: true,
        };
        BlueFs::format(&*device, &format).unwrap();
        Self {
            fs: mount(&device, false, 0).unwrap(),
            device,
            tree: Tree::default(),
            random: Random::new(options.seed),
            options,
            mounts: 0,
        }
    }

    /// Capacity of a sequential zone in bytes.
    fn zone(&self) -> u64 {
        self.device.geometry().zone_capacity
    }

    /// Block size in bytes.
    fn block(&self) -> u64 {
        self.device.geometry().block_size.into()
    }

    /// Unmounts, mounts again and compares everything with the model.
    #[track_caller]
    fn rest(&mut self) {
        self.fs.unmount().unwrap();
        assert!(matches!(self.fs.sync_metadata(), Err(Error::Unmounted)));
        self.mount();
        self.compare();
    }

    /// Mounts again without an unmount: only unsynced bytes may be lost.
    fn stop(&mut self) {
        self.mount();
    }

    /// Overwrites the conventional zones, so that the rest is not taken for a file system: it has the geometry of a
    /// part of the drive.
    fn end(self) {
        self.fs.unmount().unwrap();
        let g = self.device.geometry();
        let zeros = vec![0; (1 << 20).min(g.zone_size) as usize];
        for zone in g.zones().filter(|z| g.kind(*z) == ZoneKind::Conventional) {
            self.device.write(g.start(zone), &zeros).unwrap();
        }
    }

    fn mount(&mut self) {
        self.mounts += 1;
        self.fs = mount(&self.device, false, self.mounts % 2 * CACHE_BYTES).unwrap();
    }

    /// Compares names and bytes with the model, and checks the file system.
    #[track_caller]
    fn compare(&mut self) {
        self.tree.compare(&self.fs, &mut self.random);
        let report = self.fs.check(true).unwrap();
        assert!(report.is_clean(), "{:#?}", report.details);
        assert_eq!(report.files, self.tree.files());
    }

    /// Writes a new file of `length` bytes in pieces, durably; a file of that name is replaced. If there is no space,
    /// the file system is as before, except that a file to be replaced is gone.
    fn put(&mut self, path: &str, length: u64) -> Result<()> {
        self.tree.remove(path);
        let lifetime = LIFETIMES[self.random.below(4) as usize];
        match self.write_new(path, length, lifetime) {
            Ok(content) => self.tree.insert(path, content),
            Err(error) => {
                self.fs.delete(path).unwrap();
                return Err(error);
            }
        }
        Ok(())
    }

    fn write_new(&mut self, path: &str, length: u64, lifetime: Lifetime) -> Result<Content> {
        let mut content = self.tree.new_content();
        let mut writer = self.fs.create(path)?;
        writer.set_lifetime(lifetime);
        if self.random.below(2) == 0 {
            writer.set_expected_size(length);
        }
        while content.length() < length {
            let most = (length - content.length()).min(1 << 20);
            let piece = content.grow(1 + self.random.below(most));
            writer.append(&piece)?;
        }
        writer.sync()?;
        writer.close()?;
        Ok(content)
    }

    fn delete(&mut self, path: &str) {
        self.fs.delete(path).unwrap();
        self.tree.remove(path);
    }

    /// Removes all files of a directory; the deletions are durable.
    fn clear(&mut self, directory: &str) {
        for name in self.fs.list(directory).unwrap() {
            self.delete(&format!("{directory}/{name}"));
        }
        self.fs.sync_metadata().unwrap();
    }

    fn directory(&mut self, path: &str) {
        self.fs.create_directory(path).unwrap();
        self.tree.directory(path);
    }
}

fn mount(device: &Arc<dyn ZonedDevice>, read_only: bool, cache_bytes: u64) -> Result<BlueFs> {
    let report = device.report(ZoneId(0), u32::MAX).unwrap();
    let pool = ZonePool::new(device.geometry().clone(), &report);
    let options = MountOptions {
        read_only,
        cache_bytes,
        runtime: Runtime::seeded(0),
        ..MountOptions::default()
    };
    BlueFs::mount(Arc::clone(device), Arc::new(pool), options)
}

fn is_no_space(result: &Result<()>) -> bool {
    matches!(result, Err(Error::NoSpace { .. }))
}
