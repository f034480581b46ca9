//! The same drive files with ZEAFS.

use super::*;
use device::ZonedDevice;
use runtime::Runtime;
use std::sync::Arc;
use zeafs::{Directories, Examined, ZeaFs};

/// A drive with each of the two file systems.
pub fn both(size: u64) -> [Drive; 2] {
    [Drive::of_size(size), Drive::with_zeafs(size)]
}

impl Drive {
    pub fn with_zeafs(size: u64) -> Self {
        let mut drive = Self::unformatted(size);
        drive.scheme = "zeafs://";
        ZeaFs::format(&FileDrive::open(&drive.path).unwrap(), [9; 16], false).unwrap();
        drive
    }

    fn has_zeafs(&self) -> bool {
        self.scheme == "zeafs://"
    }

    fn mounted_zeafs<T>(&self, work: impl FnOnce(&Directories) -> T) -> T {
        let device: Arc<dyn ZonedDevice> = Arc::new(FileDrive::open(&self.path).unwrap());
        let fs = ZeaFs::mount(device, Runtime::system()).unwrap();
        let directories = Directories::new(fs);
        let done = work(&directories);
        directories.fs().unmount().unwrap();
        done
    }

    /// Whatever file system it is, it must be whole when nobody uses it.
    pub fn is_whole(&self) {
        if !self.has_zeafs() {
            return self.check();
        }
        let device = FileDrive::open(&self.path).unwrap();
        let examined = Examined::of(&device).unwrap();
        let found = examined.contradictions(&device).unwrap();
        assert!(found.is_empty(), "{found:?}");
        for file in examined.files() {
            let damage = Examined::verify(&device, &file);
            assert!(damage.is_empty(), "{}: {damage:?}", file.name);
        }
    }

    pub fn names(&self, path: &str) -> Vec<String> {
        match self.has_zeafs() {
            true => self.mounted_zeafs(|fs| fs.list(path).unwrap()),
            false => self.mounted(|fs| fs.list(path).unwrap()),
        }
    }

    /// A file of no database.
    pub fn create(&self, path: &str, data: &[u8]) {
        if self.has_zeafs() {
            return self.mounted_zeafs(|fs| {
                let mut file = fs.create(path).unwrap();
                file.append(data).unwrap();
                file.sync().unwrap();
            });
        }
        self.mounted(|fs| {
            let mut file = fs.create(path).unwrap();
            file.append(data).unwrap();
            file.sync().unwrap();
            file.close().unwrap();
        });
    }

    pub fn delete(&self, path: &str) {
        match self.has_zeafs() {
            true => self.mounted_zeafs(|fs| fs.delete(path).unwrap()),
            false => self.mounted(|fs| fs.delete(path).unwrap()),
        }
    }
}

/// Overwrites of what fits well, with syncs and without, until the drive was written over several times: only cleaning
/// makes that possible, for a log that is synced line by line leaves extents of a few live bytes everywhere.
#[test]
fn overwriting_goes_on_as_long_as_live_data_fits() {
    let drive = Drive::with_zeafs(64 << 20);
    let statistics = drive.path.with_extension("json");
    let script = "import plyvel, random
db = plyvel.DB('/db', create_if_missing=True, write_buffer_size=1 << 20, compression=None)
random.seed(1)
for n in range(14000):
    key = random.randrange(2500)
    db.put(b'%06d' % key, random.randbytes(8000), sync=n % 4 == 0)
print(sum(len(v) for _, v in db))
db.close()";
    let mut command = drive.command(PYTHON, &["-c", script]);
    let done = output(command.env("ZONESTORE_STATS", &statistics));
    let live: u64 = succeeded(&done).trim().parse().unwrap();
    assert!(live > 19_000_000, "{live}");
    let statistics = std::fs::read_to_string(statistics).unwrap();
    let statistics: serde_json::Value = serde_json::from_str(&statistics).unwrap();
    assert!(
        statistics["moved_bytes"].as_u64().unwrap() > 0,
        "{statistics}"
    );
    drive.is_whole();
}
