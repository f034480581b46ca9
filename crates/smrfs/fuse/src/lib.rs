//! Mounts file systems of smrfs by FUSE. The kernel checks permissions; the file system does everything else. A
//! background thread commits periodically, and cleans bands before they run out.

mod adaptor;
mod mounts;
mod translate;

use adaptor::Adaptor;
pub use adaptor::STATUS;
use fuser::{Config, MountOption, SessionACL};
pub use mounts::{Mount, mounts};
use runtime::Runtime;
use runtime::sync::{Condvar, Mutex};
use runtime::thread::JoinHandle;
use smrfs::FileSystem;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Number of attempts to unmount a busy mount, and the pause between two of them.
const BUSY_TRIES: u32 = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// Options of a FUSE mount.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// What `mount` shows as the source.
    pub source: String,
    /// Whether the mount is read-only.
    pub read_only: bool,
    /// Whether users other than the one who mounts may use it.
    pub allow_other: bool,
    /// Whether set-user-id programs are run as any other.
    pub no_suid: bool,
    /// Whether device files cannot be opened.
    pub no_dev: bool,
    /// Whether programs cannot be run.
    pub no_exec: bool,
    /// Time after which every change is durable at the latest.
    pub commit_every: Duration,
    /// Number of requests served concurrently.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            source: "smrfs".to_owned(),
            read_only: false,
            allow_other: false,
            no_suid: false,
            no_dev: false,
            no_exec: false,
            commit_every: Duration::from_secs(5),
            threads: 4,
        }
    }
}

/// Where a file system is mounted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    path: PathBuf,
    /// Device number of the mount: another file system may be mounted at the path later.
    device: u64,
    /// As the number may be given to another mount once this one has ended.
    source: PathBuf,
}

impl Place {
    /// As [`unmount`], but leaves another file system alone that hides this one, or has come in its place.
    ///
    /// # Errors
    /// The path shows another file system, or the kernel refuses.
    pub fn unmount(&self) -> io::Result<()> {
        self.check()?;
        unmount(&self.path)
    }

    /// An error if the path does not show this mount.
    fn check(&self) -> io::Result<()> {
        let mut here = mounts()?;
        here.retain(|mount| mount.directory == self.path);
        let is_this = |mount: &Mount| mount.device == self.device && mount.source == self.source;
        let why = match here.last() {
            Some(last) if is_this(last) => return Ok(()),
            _ if here.iter().any(is_this) => "another file system is mounted over it",
            _ => "it is unmounted, and files in it are open",
        };
        Err(io::Error::other(why))
    }
}

/// A mounted file system. Dropping it unmounts.
#[derive(Debug)]
pub struct Mounted {
    /// Thread that answers the kernel's requests until the unmount.
    answering: Option<JoinHandle<io::Result<()>>>,
    fs: Arc<FileSystem>,
    place: Place,
    ticker: Option<JoinHandle<()>>,
    stop: Arc<Stop>,
}

#[derive(Debug, Default)]
struct Stop {
    is_wanted: Mutex<bool>,
    changed: Condvar,
}

/// Mounts `fs` at `path`. From then on, threads answer the kernel's requests.
pub fn mount(
    fs: Arc<FileSystem>,
    runtime: &Runtime,
    path: &Path,
    options: &Options,
) -> io::Result<Mounted> {
    let path = &path.canonicalize()?;
    let is_root = rustix::process::geteuid().is_root();
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(source(&options.source, is_root)),
        MountOption::DefaultPermissions,
        MountOption::NoAtime,
        if options.read_only {
            MountOption::RO
        } else {
            MountOption::RW
        },
    ];
    // If root mounts, the kernel honours device files and set-user-id programs, as on any file system, unless told not
    // to. It gets the file-system type too, by which umount(8) looks for a helper; for other users, `fusermount3`
    // passes it, and both restrictions.
    config.mount_options.push(match is_root {
        true => MountOption::CUSTOM("subtype=smrfs".to_owned()),
        false => MountOption::Subtype("smrfs".to_owned()),
    });
    let restrictions = [
        (options.no_suid, MountOption::NoSuid, MountOption::Suid),
        (options.no_dev, MountOption::NoDev, MountOption::Dev),
        (options.no_exec, MountOption::NoExec, MountOption::Exec),
    ];
    for (is_wanted, restriction, otherwise) in restrictions {
        if is_wanted {
            config.mount_options.push(restriction);
        } else if is_root {
            config.mount_options.push(otherwise);
        }
    }
    if options.allow_other {
        config.acl = SessionACL::All;
    }
    config.n_threads = Some(options.threads.max(1));
    config.clone_fd = true;
    let mut session = fuser::spawn_mount(Adaptor::new(Arc::clone(&fs)), path, &config)?;
    let nothing = runtime.spawn("smrfs-mounted", || Ok(()))?;
    let answering = std::mem::replace(&mut session.guard, nothing);
    // fuser 0.18 takes a mount that is gone for an existing one: dropping the session would unmount whatever is at
    // the path by then. So the session is kept until the process ends.
    std::mem::forget(session);
    let there = std::fs::metadata(path).inspect_err(|_| _ = unmount(path))?;
    let mut mounted = Mounted {
        answering: Some(answering),
        fs,
        place: Place {
            path: path.clone(),
            device: there.dev(),
            source: PathBuf::from(&options.source),
        },
        ticker: None,
        stop: Arc::new(Stop::default()),
    };
    if !options.read_only {
        let (fs, stop) = (Arc::clone(&mounted.fs), Arc::clone(&mounted.stop));
        let every = options.commit_every;
        let ticker = runtime.spawn("smrfs-commit", move || tick(&fs, &stop, every))?;
        mounted.ticker = Some(ticker);
    }
    Ok(mounted)
}

/// The source as an option of the mount. `fusermount3` takes options apart at commas that have no backslash in front.
fn source(name: &str, is_root: bool) -> String {
    match is_root {
        true => name.to_owned(),
        false => name.replace('\\', r"\\").replace(',', r"\,"),
    }
}

/// Unmounts the file system at `path` even while files in it are open: it leaves the tree at once, and ends when the
/// last of them is closed.
pub fn unmount(path: &Path) -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        let detach = rustix::mount::UnmountFlags::DETACH;
        return Ok(rustix::mount::unmount(path, detach)?);
    }
    let done = Command::new("fusermount3")
        .args(["-u", "-z"])
        .arg(path)
        .status()?;
    match done.success() {
        true => Ok(()),
        false => Err(io::Error::other("fusermount3 -u failed")),
    }
}

fn tick(fs: &FileSystem, stop: &Stop, every: Duration) {
    let mut is_wanted = stop.is_wanted.lock();
    let mut failures = Failures::default();
    while !*is_wanted {
        stop.changed.wait_for(&mut is_wanted, every);
        // The lock is released between two bands, for readers and writers.
        loop {
            let is_last = *is_wanted;
            let ticked = runtime::sync::MutexGuard::unlocked(&mut is_wanted, || fs.tick());
            if let Some(error) = failures.new_in(&ticked) {
                tracing::error!(%error, "a commit in the background failed");
            }
            if is_last || !matches!(ticked, Ok(true)) {
                break;
            }
        }
    }
}

/// Failures of work that is tried again and again, of which each is logged once until the work succeeds.
#[derive(Default)]
struct Failures {
    last: Option<String>,
}

impl Failures {
    /// The failure, unless the last try failed for the same reason.
    fn new_in<'a, T>(&mut self, tried: &'a smrfs::Result<T>) -> Option<&'a smrfs::Error> {
        let error = tried.as_ref().err();
        let reason = error.map(ToString::to_string);
        let is_new = reason != self.last;
        self.last = reason;
        error.filter(|_| is_new)
    }
}

impl Mounted {
    /// The file system.
    pub const fn fs(&self) -> &Arc<FileSystem> {
        &self.fs
    }

    /// Where the file system is mounted.
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// Waits until the file system is unmounted from outside, and makes all changes durable.
    pub fn wait(mut self) -> io::Result<()> {
        let answered = self.answered();
        self.end()?;
        answered
    }

    /// Unmounts the file system, and makes all changes durable. Fails while files in it are open.
    pub fn unmount(mut self) -> io::Result<()> {
        let left = self.leave().and_then(|()| self.answered());
        self.answering = None;
        self.end()?;
        left
    }

    /// Waits until the thread that answers requests has ended.
    fn answered(&mut self) -> io::Result<()> {
        let panicked = |_| Err(io::Error::other("what answers the kernel has panicked"));
        let answering = self.answering.take();
        let answered = answering.map_or(Ok(()), |thread| thread.join().unwrap_or_else(panicked));
        match answered {
            // The last open file is closed, and a request that no process waits for any more was aborted with it.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => Ok(()),
            answered => answered,
        }
    }

    /// Unmounts the path unless it is unmounted already. A process that inspects all mounts may keep it busy for a
    /// moment.
    fn leave(&self) -> io::Result<()> {
        use rustix::io::Errno;
        let mut is_wanted = self.stop.is_wanted.lock();
        for _ in 0..BUSY_TRIES {
            if self.answering.as_ref().is_none_or(JoinHandle::is_finished) {
                return Ok(());
            }
            self.place.check()?;
            match rustix::mount::unmount(&self.place.path, rustix::mount::UnmountFlags::empty()) {
                Err(Errno::BUSY) => {}
                Err(Errno::PERM) => return unmount(&self.place.path),
                left => return Ok(left?),
            }
            self.stop.changed.wait_for(&mut is_wanted, BETWEEN_TRIES);
        }
        Err(Errno::BUSY.into())
    }

    fn end(&mut self) -> io::Result<()> {
        *self.stop.is_wanted.lock() = true;
        self.stop.changed.notify_all();
        if let Some(ticker) = self.ticker.take() {
            let _ = ticker.join();
        }
        if self.fs.is_read_only() {
            return Ok(());
        }
        self.fs.seal().map_err(io::Error::other)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.leave().is_ok() {
            let _ = self.answered();
        }
        if let Err(error) = self.end() {
            tracing::error!(%error, "the last commit of a mount failed");
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use smrfs::Error;

    /// As `fusermount3` reads options.
    #[test]
    fn a_source_comes_back_out_of_the_options() {
        let name = r"/srv/a,b\c\,d.zoned";
        assert_eq!(source(name, true), name);
        let option = source(name, false) + ",ro";
        let (mut read, mut rest) = (String::new(), option.chars());
        while let Some(next) = rest.next().filter(|next| *next != ',') {
            read.push(if next == '\\' {
                rest.next().unwrap()
            } else {
                next
            });
        }
        assert_eq!((&*read, rest.as_str()), (name, "ro"));
    }

    #[test]
    fn a_failure_is_logged_again_after_a_success_or_another_failure() {
        let mut failures = Failures::default();
        let mut logged = |tried| failures.new_in::<()>(&tried).is_some();
        assert!(logged(Err(Error::NoSpace)));
        assert!(!logged(Err(Error::NoSpace)));
        assert!(logged(Err(Error::NoMetadataSpace)));
        assert!(logged(Err(Error::NoSpace)));
        assert!(!logged(Ok(())));
        assert!(logged(Err(Error::NoSpace)));
    }
}
