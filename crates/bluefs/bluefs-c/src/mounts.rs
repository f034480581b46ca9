//! The drives that this process has mounted by path. Each has one mount, which all users share; it ends with the last
//! handle of the file system or at exit. The drive stays open as long as readers and writers are left.

use crate::failure::Failure;
use crate::file_system::FileSystem;
use crate::forks::{Locks, Mounted, is_cut_off};
use bluefs::{BlueFs, Cleaning, MountOptions};
use cache::Shares;
use device::trace::{Event, Trace};
use device::{Drive, ZonedDevice};
use runtime::Runtime;
use runtime::sync::{Condvar, Mutex, MutexGuard};
use runtime::thread::JoinHandle;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::time::Duration;
use zeafs::{Directories, ZeaFs};
use zone::Bytes;
use zone::shell::shell_word;

/// Environment variable, optional: JSON file for the statistics at unmount.
const STATISTICS: &str = "ZONESTORE_STATS";
/// Environment variable, optional: file to which every command to the drive is appended, one JSON object a line.
const TRACE: &str = "ZONESTORE_TRACE";
/// Environment variable: address of the drive for a preloaded library whose program passes none.
const URI: &str = "ZONESTORE_URI";
/// Prefixes of such addresses, by file system.
const SCHEMES: [(&[u8], Kind); 2] = [(b"zonestore://", Kind::BlueFs), (b"zeafs://", Kind::ZeaFs)];

/// Environment variable, optional: bytes of the read cache, as `64MiB` or a number. By default a share of the machine's
/// memory for a block device, which the host does not cache, and 0 otherwise.
const CACHE: &str = "ZONESTORE_CACHE_BYTES";

/// Environment variable, optional: milliseconds after which unsynced bytes of a log and changes of names are written out;
/// 0: never because of their age.
const LOG_AGE: &str = "ZONESTORE_LOG_AGE_MS";
/// Default of [`LOG_AGE`].
const DEFAULT_LOG_AGE_MS: u64 = 1000;

/// How long the end of the process waits for another thread that ends a mount: a signal's handler that ends the process may
/// have interrupted that very thread.
const ENDING_AT_MOST: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Environment variable, optional: 1 to also cache written data that a compaction is going to read soon.
const CACHE_WRITES: &str = "ZONESTORE_CACHE_WRITES";

/// A file system that can be on a drive.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    BlueFs,
    ZeaFs,
}

/// A mounted drive, shared by all its users.
pub(crate) struct Mount {
    /// Dropped before the drive is closed, after which its descriptor's number may be another file's.
    _locks: Locks,
    path: PathBuf,
    pub fs: Arc<dyn FileSystem>,
    stopped: AtomicBool,
    writes_out: Option<WritesOut>,
    /// Dropped when the drive is closed, if no file is open, and before a child that is forked can take the process for
    /// one without mounts.
    _listed: Listed,
    _mounted: Mounted,
}

/// The entry of a mount in [`MOUNTS`], which is removed when this is dropped.
struct Listed(PathBuf);

impl Drop for Listed {
    fn drop(&mut self) {
        MOUNTS.lock().remove(&self.0);
        ENDED.notify_all();
    }
}

static MOUNTS: LazyLock<Mutex<BTreeMap<PathBuf, Weak<Mount>>>> = LazyLock::new(Mutex::default);
/// Notified when a mount has ended.
static ENDED: LazyLock<Condvar> = LazyLock::new(Condvar::default);

/// Mounts the drive whose address [`URI`] has.
pub(crate) fn open_named() -> Result<Arc<Mount>, String> {
    let uri = std::env::var_os(URI).unwrap_or_default();
    let place = SCHEMES.into_iter().find_map(|(scheme, kind)| {
        let path = uri.as_bytes().strip_prefix(scheme)?;
        Some((Path::new(OsStr::from_bytes(path)), kind))
    });
    match place {
        Some((path, kind)) => open(path, kind),
        None => Err(format!(
            "{URI} is `{}`; it has to be zonestore:///path/of/drive",
            uri.display()
        )),
    }
}

/// Mounts the drive at `path`, or returns its existing mount. The error is one line, with a remedy if there is one.
pub(crate) fn open(path: &Path, kind: Kind) -> Result<Arc<Mount>, String> {
    let shown = path.display();
    let path = path.canonicalize().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            format!(
                "drive {shown}: No such file; make one with `zonestore drive create {}`",
                shell_word(path)
            )
        }
        _ => format!("drive {shown}: {error}"),
    })?;
    // Before the lock: a child that is forked meanwhile has a copy of it that nobody opens, and must not ask for it.
    let mounted = Mounted::new();
    let mut mounts = MOUNTS.lock();
    while let Some(listed) = mounts.get(&path) {
        match listed.upgrade() {
            Some(mount) => return Ok(mount),
            // It is just ending: its drive is in use until then.
            None => ENDED.wait(&mut mounts),
        }
    }
    let log_age = match std::env::var_os(LOG_AGE) {
        Some(found) => milliseconds(&found)?,
        None => DEFAULT_LOG_AGE_MS,
    };
    let fs = match kind {
        Kind::BlueFs => mount_bluefs(&path)?,
        Kind::ZeaFs => mount_zeafs(&path)?,
    };
    let writes_out = (log_age > 0).then(|| WritesOut::start(fs.clone(), log_age));
    let mount = Arc::new(Mount {
        _locks: Locks::of(&path),
        path: path.clone(),
        fs,
        writes_out: writes_out.flatten(),
        stopped: AtomicBool::new(false),
        _listed: Listed(path.clone()),
        _mounted: mounted,
    });
    mounts.insert(path, Arc::downgrade(&mount));
    Ok(mount)
}

/// Opens a file for what is recorded of a drive. Standard output and standard error are written to as they are open: by
/// another opening they would be emptied, or written over from their start.
///
/// # Errors
/// The host's error; the path names a pipe or a socket, whose reader may end the process or hold it up, or another file
/// that the process has open.
fn open_record(path: &Path, options: &OpenOptions) -> io::Result<File> {
    let refused = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    let kind = path.metadata().ok().map(|found| found.file_type());
    if kind.is_some_and(|kind| kind.is_fifo() || kind.is_socket()) {
        return refused("a pipe or a socket; name a file");
    }
    match runtime::descriptor(path) {
        Some(1) => Ok(io::stdout().as_fd().try_clone_to_owned()?.into()),
        Some(2) => Ok(io::stderr().as_fd().try_clone_to_owned()?.into()),
        Some(_) if kind.is_some_and(|kind| kind.is_file()) => {
            refused("a file that this process has open; name the file")
        }
        _ => options.open(path),
    }
}

fn open_drive(path: &Path) -> Result<Arc<dyn ZonedDevice>, String> {
    let drive = Drive::open(path).map_err(|error| format!("drive {error}"))?;
    let Some(told) = std::env::var_os(TRACE) else {
        return Ok(Arc::new(drive));
    };
    let mut options = OpenOptions::new();
    let file = open_record(Path::new(&told), options.create(true).append(true))
        .map_err(|error| format!("{TRACE}: {}: {error}", told.display()))?;
    let file = Mutex::new(file);
    let sink = move |event: &Event| {
        // The command has been carried out, whether it could be traced or not.
        if let Ok(line) = serde_json::to_string(event)
            && let Err(error) = writeln!(file.lock(), "{line}")
        {
            tracing::warn!(%error, "a command is missing in {}", told.display());
        }
    };
    Ok(Arc::new(Trace::new(drive, Arc::new(sink))))
}

fn mount_bluefs(path: &Path) -> Result<Arc<dyn FileSystem>, String> {
    let cache_bytes = match std::env::var_os(CACHE) {
        Some(found) => cache_bytes(&found)?,
        None if device::is_host_device(path) => Shares::of(runtime::memory_bytes()).data,
        None => 0,
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
    let options = MountOptions {
        cache_bytes,
        cache_writes,
        cleaning: Some(Cleaning::default()),
        keep_unsynced: true,
        ..MountOptions::default()
    };
    let shown = path.display();
    let mounted = BlueFs::mount_alone(open_drive(path)?, options);
    let fs = mounted.map_err(|error| match error {
        bluefs::Error::NotFormatted => {
            format!("drive {shown} is empty and not formatted; make a file system with `zonestore fs mkfs {}`", shell_word(path))
        }
        error @ bluefs::Error::Unsynced(_) => error.to_string(),
        error => format!("drive {shown}: {error}"),
    })?;
    Ok(Arc::new(fs))
}

fn mount_zeafs(path: &Path) -> Result<Arc<dyn FileSystem>, String> {
    let shown = path.display();
    let mounted = ZeaFs::mount(open_drive(path)?, Runtime::system());
    let fs = mounted.map_err(|error| match error {
        zeafs::Error::NotFormatted => {
            format!(
                "drive {shown}: {error}; make one with `zonestore zea mkfs --fs {}`",
                shell_word(path)
            )
        }
        error => format!("drive {shown}: {error}"),
    })?;
    Ok(Arc::new(Directories::new(fs)))
}

/// Stops every mount, whoever uses it, at the end of the process, and waits for those that other threads are ending.
pub(crate) fn stop_all() {
    if is_cut_off() {
        return;
    }
    // Whoever drops the last copy of a mount takes the lock.
    let mounts: Vec<_> = MOUNTS.lock().values().filter_map(Weak::upgrade).collect();
    for mount in mounts {
        mount.stop();
    }
    let mut mounts = MOUNTS.lock();
    for _ in 0..ENDING_AT_MOST.as_millis() / LOOK_AGAIN.as_millis() {
        if mounts.values().all(|mount| mount.strong_count() > 0) {
            return;
        }
        ENDED.wait_for(&mut mounts, LOOK_AGAIN);
    }
}

impl Mount {
    /// Makes everything durable and ends the mount; later calls of its users return errors.
    fn stop(&self) {
        if self.stopped.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(writes_out) = &self.writes_out {
            writes_out.stop();
        }
        if let Err(error) = self.fs.unmount() {
            eprintln!("zonestore: {}: {}", self.path.display(), error.words);
        }
        write_statistics(&*self.fs);
    }
}

/// Parses the value of [`CACHE`].
fn cache_bytes(found: &OsStr) -> Result<u64, String> {
    let refused = |error: &dyn Display| format!("{CACHE}: {}: {error}", found.display());
    let size: Bytes = found
        .to_string_lossy()
        .parse()
        .map_err(|error| refused(&error))?;
    Shares::asked(size.0, runtime::memory_bytes()).map_err(|error| refused(&error))
}

/// Parses the value of [`LOG_AGE`].
fn milliseconds(found: &OsStr) -> Result<u64, String> {
    let parsed = found.to_str().and_then(|text| text.parse().ok());
    let refused = || {
        format!(
            "{LOG_AGE}: not a number of milliseconds: {}",
            found.display()
        )
    };
    parsed.ok_or_else(refused)
}

/// The thread that writes out unsynced bytes of logs when they have reached a certain age.
struct WritesOut {
    is_over: Arc<(Mutex<bool>, Condvar)>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl WritesOut {
    fn start(fs: Arc<dyn FileSystem>, age_ms: u64) -> Option<Self> {
        let is_over = Arc::new((Mutex::new(false), Condvar::new()));
        let seen = is_over.clone();
        // Bytes that are too young at one check are old enough at the next.
        let pause = Duration::from_millis(age_ms.div_ceil(2));
        let work = move || {
            let (is_over, changed) = &*seen;
            let mut over = is_over.lock();
            // The same error is not told twice in a row.
            let mut told = String::new();
            while !*over {
                changed.wait_for(&mut over, pause);
                let done = MutexGuard::unlocked(&mut over, || fs.write_out(age_ms * 1000 / 2));
                let words = done.map_or_else(|Failure { words, .. }| words, |()| String::new());
                if !words.is_empty() && words != told {
                    tracing::warn!(
                        error = words,
                        "logs or changes of names could not be written out"
                    );
                }
                told = words;
            }
        };
        let failed =
            |error: &_| tracing::warn!(%error, "logs are written out only when they are synced");
        let thread = Runtime::system()
            .spawn("bluefs-logs", work)
            .inspect_err(failed)
            .ok()?;
        let thread = Mutex::new(Some(thread));
        Some(Self { is_over, thread })
    }

    fn stop(&self) {
        *self.is_over.0.lock() = true;
        self.is_over.1.notify_all();
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that writes out logs has panicked");
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        self.stop();
    }
}

fn write_statistics(fs: &dyn FileSystem) {
    let Some(path) = std::env::var_os(STATISTICS) else {
        return;
    };
    let value = fs.statistics();
    let (path, text) = (Path::new(&path), format!("{value:#}\n"));
    let mut options = OpenOptions::new();
    let opened = open_record(path, options.create(true).write(true).truncate(true));
    if let Err(error) = opened.and_then(|mut file| file.write_all(text.as_bytes())) {
        eprintln!("zonestore: {}: {error}", path.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    use std::process::{Command, Stdio};

    #[test]
    fn a_cache_has_a_size_with_a_unit_or_is_refused_by_name() {
        let of = |text: &str| cache_bytes(OsStr::new(text));
        assert_eq!(of("0"), Ok(0));
        assert_eq!(of("1048576"), Ok(1 << 20));
        assert_eq!(of("1MiB"), Ok(1 << 20));
        for wrong in ["", "much", "-1", "4096", "1000000TiB"] {
            assert!(
                of(wrong).is_err_and(|error| error.starts_with(CACHE)),
                "{wrong}"
            );
        }
    }

    #[test]
    fn neither_a_pipe_nor_what_is_open_is_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let name = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: The name ends with a zero byte.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let mut options = OpenOptions::new();
        let options = options.read(true).custom_flags(libc::O_NONBLOCK);
        let _reader = options.open(&path).unwrap();
        open_record(&path, OpenOptions::new().append(true)).unwrap_err();
        let path = folder.path().join("log");
        std::fs::write(&path, "mine").unwrap();
        let open = File::open(&path).unwrap();
        let name = format!("/dev/fd/{}", open.as_raw_fd());
        let mut options = OpenOptions::new();
        options.write(true).truncate(true);
        open_record(Path::new(&name), &options).unwrap_err();
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
        open_record(&path, &options).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"");
    }

    /// Set in the process whose standard error is a file.
    const CHILD: &str = "ZONESTORE_TEST_STANDARD_ERROR";

    #[test]
    fn standard_error_that_is_a_file_keeps_what_it_has() {
        if std::env::var_os(CHILD).is_some() {
            let mut options = OpenOptions::new();
            options.create(true).write(true).truncate(true);
            let mut file = open_record(Path::new("/dev/stderr"), &options).unwrap();
            file.write_all(b"told\n").unwrap();
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = File::create(&path).unwrap();
        log.write_all(b"before\n").unwrap();
        let this = "mounts::tests::standard_error_that_is_a_file_keeps_what_it_has";
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", this, "--nocapture"]).env(CHILD, "");
        let ended = child.stdout(Stdio::null()).stderr(log).status().unwrap();
        assert!(ended.success());
        let log = std::fs::read_to_string(&path).unwrap();
        assert!(
            log.starts_with("before\n") && log.contains("told\n"),
            "{log}"
        );
    }
}
