//! The drives that this process has mounted by path: one mount each, shared, ended with the last
//! user or at exit.

use crate::forks::Mounted;
use bluefs::{BlueFs, Cleaning, MountOptions};
use device::{Drive, ZonedDevice};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use zone::ZoneId;
use zone_alloc::ZonePool;

/// Where statistics go at unmount, if set: a JSON file.
const STATISTICS: &str = "ZONESTORE_STATS";
/// Which drive a preloaded library mounts that is not told by its program.
const URI: &str = "ZONESTORE_URI";
const SCHEME: &[u8] = b"zonestore://";

/// Bytes of memory for what was read.
const CACHE: &str = "ZONESTORE_CACHE_BYTES";
/// So many unless set, for a device: what is read from it, the host does not keep.
const DEVICE_CACHE_BYTES: u64 = 64 << 20;

/// 1: what is written and soon read again by a compaction is kept there, too.
const CACHE_WRITES: &str = "ZONESTORE_CACHE_WRITES";

/// A mounted drive.
pub(crate) struct Mount {
    path: PathBuf,
    pub fs: BlueFs,
    stopped: AtomicBool,
    _mounted: Mounted,
}

static MOUNTS: LazyLock<Mutex<HashMap<PathBuf, Weak<Mount>>>> = LazyLock::new(Mutex::default);

/// Mounts the drive that the environment names.
pub(crate) fn open_named() -> Result<Arc<Mount>, String> {
    let uri = std::env::var_os(URI).unwrap_or_default();
    match uri.as_bytes().strip_prefix(SCHEME) {
        Some(path) => open(Path::new(OsStr::from_bytes(path))),
        None => Err(format!(
            "{URI} is `{}`; it has to be zonestore:///path/of/drive",
            uri.display()
        )),
    }
}

/// Mounts the drive at `path`, or shares the mount there is. The error is one line that says
/// what to do.
pub(crate) fn open(path: &Path) -> Result<Arc<Mount>, String> {
    let shown = path.display();
    let path = path.canonicalize().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            format!("drive {shown}: No such file; make one with `zonestore drive create {shown}`")
        }
        _ => format!("drive {shown}: {error}"),
    })?;
    let mut mounts = MOUNTS.lock();
    if let Some(mount) = mounts.get(&path).and_then(Weak::upgrade) {
        return Ok(mount);
    }
    let cache_bytes = match std::env::var_os(CACHE) {
        None if device::is_host_device(&path) => DEVICE_CACHE_BYTES,
        None => 0,
        Some(found) => found
            .to_str()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| format!("{CACHE}: not a number of bytes: {}", found.display()))?,
    };
    let cache_writes = match std::env::var_os(CACHE_WRITES) {
        None => false,
        Some(found) if found == "0" => false,
        Some(found) if found == "1" => true,
        Some(found) => {
            return Err(format!(
                "{CACHE_WRITES}: neither 0 nor 1: {}",
                found.display()
            ));
        }
    };
    let drive = Drive::open(&path).map_err(|error| format!("drive {error}"))?;
    let device: Arc<dyn ZonedDevice> = Arc::new(drive);
    let geometry = device.geometry().clone();
    let report = device
        .report(ZoneId(0), geometry.zone_count)
        .map_err(|error| format!("drive {shown}: {error}"))?;
    let pool = Arc::new(ZonePool::new(geometry, &report));
    let options = MountOptions {
        cache_bytes,
        cache_writes,
        cleaning: Some(Cleaning::default()),
        ..MountOptions::default()
    };
    let fs = BlueFs::mount(device, pool, options).map_err(|error| match error {
        bluefs::Error::NotFormatted => {
            format!("drive {shown} is empty and not formatted; make a file system with `zonestore fs mkfs {shown}`")
        }
        error => format!("drive {shown}: {error}"),
    })?;
    let mount = Arc::new(Mount {
        path: path.clone(),
        fs,
        stopped: AtomicBool::new(false),
        _mounted: Mounted::new(),
    });
    mounts.insert(path, Arc::downgrade(&mount));
    Ok(mount)
}

impl Mount {
    /// Makes everything durable and ends the mount; whoever still uses it gets errors.
    pub fn stop(&self) {
        if self.stopped.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Err(error) = self.fs.unmount() {
            eprintln!("zonestore: {}: {error}", self.path.display());
        }
        write_statistics(&self.fs);
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        self.stop();
        let mut mounts = MOUNTS.lock();
        if mounts
            .get(&self.path)
            .is_some_and(|m| m.strong_count() == 0)
        {
            mounts.remove(&self.path);
        }
    }
}

fn write_statistics(fs: &BlueFs) {
    let Some(path) = std::env::var_os(STATISTICS) else {
        return;
    };
    let statistics = fs.statistics();
    let Ok(mut value) = serde_json::to_value(statistics) else {
        return;
    };
    value["bytes_asked"] = statistics.bytes_asked().into();
    value["bytes_written"] = statistics.bytes_written().into();
    if let Err(error) = std::fs::write(&path, format!("{value:#}\n")) {
        eprintln!("zonestore: {}: {error}", Path::new(&path).display());
    }
}
