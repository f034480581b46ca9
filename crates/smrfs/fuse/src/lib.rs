//! File systems of smrfs mounted by FUSE. The kernel checks permissions; everything else is the file system's.
//! A thread commits once in a while and cleans bands before they run out.

mod adaptor;
mod translate;

use adaptor::Adaptor;
pub use adaptor::STATUS;
use fuser::{Config, MountOption, SessionACL};
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

/// How often a busy mount is tried to be unmounted, and how long after each other.
const BUSY_TRIES: u32 = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// How a file system is mounted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// What `mount` shows as the source.
    pub source: String,
    /// Nothing can be changed.
    pub read_only: bool,
    /// Other users than the one who mounts may use it.
    pub allow_other: bool,
    /// What was done is durable after so long at the latest.
    pub commit_every: Duration,
    /// Requests that are carried out at once.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            source: "smrfs".to_owned(),
            read_only: false,
            allow_other: false,
            commit_every: Duration::from_secs(5),
            threads: 4,
        }
    }
}

/// A mounted file system. Dropping it unmounts.
#[derive(Debug)]
pub struct Mounted {
    /// Answers the kernel's requests until it is unmounted.
    answering: Option<JoinHandle<io::Result<()>>>,
    fs: Arc<FileSystem>,
    path: PathBuf,
    /// The number that the kernel gave it: at the path may be another one by and by.
    device: u64,
    ticker: Option<JoinHandle<()>>,
    stop: Arc<Stop>,
}

#[derive(Debug, Default)]
struct Stop {
    is_wanted: Mutex<bool>,
    changed: Condvar,
}

/// Mounts `fs` at `path`. The kernel's requests are answered from then on, in threads of their own.
pub fn mount(
    fs: Arc<FileSystem>,
    runtime: &Runtime,
    path: &Path,
    options: &Options,
) -> io::Result<Mounted> {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(options.source.clone()),
        MountOption::DefaultPermissions,
        MountOption::NoAtime,
        if options.read_only {
            MountOption::RO
        } else {
            MountOption::RW
        },
    ];
    // Device files and set-user-id programs are obeyed where root mounts, as on any file system. The kernel is told the
    // type, which umount(8) looks for a helper by; `fusermount3` tells it for all others.
    config
        .mount_options
        .extend(match rustix::process::geteuid().is_root() {
            true => vec![
                MountOption::Dev,
                MountOption::Suid,
                MountOption::CUSTOM("subtype=smrfs".to_owned()),
            ],
            false => vec![MountOption::Subtype("smrfs".to_owned())],
        });
    if options.allow_other {
        config.acl = SessionACL::All;
    }
    config.n_threads = Some(options.threads.max(1));
    config.clone_fd = true;
    let mut session = fuser::spawn_mount(Adaptor::new(Arc::clone(&fs)), path, &config)?;
    let nothing = runtime.spawn("smrfs-mounted", || Ok(()))?;
    let answering = std::mem::replace(&mut session.guard, nothing);
    // fuser 0.18 takes a mount that is gone for one that is there, and when this is dropped unmounts whatever is at the
    // path by then. So it stays until the process ends.
    std::mem::forget(session);
    let there = std::fs::metadata(path).inspect_err(|_| _ = unmount(path))?;
    let mut mounted = Mounted {
        answering: Some(answering),
        fs,
        path: path.to_owned(),
        device: there.dev(),
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

/// Unmounts what is mounted at `path`, also while files in it are open: it goes from the tree at once, and ends when
/// the last of them is closed.
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
    let mut has_failed = false;
    while !*is_wanted {
        stop.changed.wait_for(&mut is_wanted, every);
        // Readers and writers have their turn between two bands.
        loop {
            let is_last = *is_wanted;
            match runtime::sync::MutexGuard::unlocked(&mut is_wanted, || fs.tick()) {
                Ok(true) if !is_last => {}
                Ok(_) => break,
                Err(error) => {
                    if !has_failed {
                        tracing::error!(%error, "a commit in the background failed");
                    }
                    has_failed = true;
                    break;
                }
            }
        }
    }
}

impl Mounted {
    /// The file system.
    pub const fn fs(&self) -> &Arc<FileSystem> {
        &self.fs
    }

    /// Waits until somebody unmounts it, and makes everything durable.
    pub fn wait(mut self) -> io::Result<()> {
        let answered = self.answered();
        self.end()?;
        answered
    }

    /// Unmounts it, and makes everything durable. Fails while files in it are open.
    pub fn unmount(mut self) -> io::Result<()> {
        let left = self.leave().and_then(|()| self.answered());
        self.answering = None;
        self.end()?;
        left
    }

    /// Waits until nothing is answered any more.
    fn answered(&mut self) -> io::Result<()> {
        let panicked = |_| Err(io::Error::other("what answers the kernel has panicked"));
        let answering = self.answering.take();
        let answered = answering.map_or(Ok(()), |thread| thread.join().unwrap_or_else(panicked));
        match answered {
            // The last one who had a file open is gone, and a request that nobody waits for any more with him.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => Ok(()),
            answered => answered,
        }
    }

    /// Takes it from the tree, unless somebody has. Who looks at all mounts may keep it busy for a moment.
    fn leave(&self) -> io::Result<()> {
        use rustix::io::Errno;
        let mut is_wanted = self.stop.is_wanted.lock();
        for _ in 0..BUSY_TRIES {
            if self.answering.as_ref().is_none_or(JoinHandle::is_finished) {
                return Ok(());
            }
            if std::fs::metadata(&self.path).is_ok_and(|there| there.dev() != self.device) {
                return Err(io::Error::other(
                    "it is unmounted, and files in it are open",
                ));
            }
            match rustix::mount::unmount(&self.path, rustix::mount::UnmountFlags::empty()) {
                Err(Errno::BUSY) => {}
                Err(Errno::PERM) => return unmount(&self.path),
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
