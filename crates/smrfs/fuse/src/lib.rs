//! File systems of smrfs mounted by FUSE. The kernel checks permissions; everything else is the file system's.
//! A thread commits once in a while and cleans bands before they run out.

mod adaptor;
mod translate;

use adaptor::Adaptor;
pub use adaptor::STATUS;
use fuser::{BackgroundSession, Config, MountOption, SessionACL};
use runtime::Runtime;
use runtime::sync::{Condvar, Mutex};
use runtime::thread::JoinHandle;
use smrfs::FileSystem;
use std::io;
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
    session: Option<BackgroundSession>,
    fs: Arc<FileSystem>,
    path: PathBuf,
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
    let session = fuser::spawn_mount(Adaptor::new(Arc::clone(&fs)), path, &config)?;
    let stop = Arc::new(Stop::default());
    let ticker = match options.read_only {
        true => None,
        false => {
            let (fs, stop, every) = (Arc::clone(&fs), Arc::clone(&stop), options.commit_every);
            Some(runtime.spawn("smrfs-commit", move || tick(&fs, &stop, every))?)
        }
    };
    Ok(Mounted {
        session: Some(session),
        fs,
        path: path.to_owned(),
        ticker,
        stop,
    })
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
        let joined = self.session.take().map_or(Ok(()), BackgroundSession::join);
        self.end()?;
        joined
    }

    /// Unmounts it, and makes everything durable. Fails while files in it are open.
    pub fn unmount(mut self) -> io::Result<()> {
        let is_gone = self.leave();
        let left = self.session.take().map_or(Ok(()), |session| match is_gone {
            true => session.join(),
            false => session.umount_and_join(),
        });
        self.end()?;
        left
    }

    /// Takes it from the tree. Somebody who looks at all mounts may keep it busy for a moment.
    fn leave(&self) -> bool {
        let mut is_wanted = self.stop.is_wanted.lock();
        for _ in 0..BUSY_TRIES {
            let left = rustix::mount::unmount(&self.path, rustix::mount::UnmountFlags::empty());
            if left != Err(rustix::io::Errno::BUSY) {
                return left.is_ok();
            }
            self.stop.changed.wait_for(&mut is_wanted, BETWEEN_TRIES);
        }
        false
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
        self.fs.sync().map_err(io::Error::other)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            let _ = session.umount_and_join();
        }
        if let Err(error) = self.end() {
            tracing::error!(%error, "the last commit of a mount failed");
        }
    }
}
