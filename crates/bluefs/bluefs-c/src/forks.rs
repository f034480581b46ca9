//! Cuts a forked process off from the drives that its parent has mounted. Both would write to the same zones, each with
//! its own view in memory of what lies in them. A fork while nothing is mounted is harmless, and so is one that is
//! followed by exec at once.
//!
//! The child closes its copies of the descriptors that hold the drives' locks: nobody could use a drive after the
//! parent's end otherwise.

use crate::ending;
use std::fs::{self, DirEntry};
use std::os::fd::RawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

pub(crate) const REFUSED: &str =
    "the drive was mounted before this process was forked, and belongs to its parent";

static MOUNTED: AtomicUsize = AtomicUsize::new(0);
static CUT_OFF: AtomicBool = AtomicBool::new(false);
/// Descriptors that hold locks of mounted drives; as many as a process is likely to mount.
static HOLDING: [AtomicI32; 64] = [const { AtomicI32::new(NONE) }; 64];
const NONE: RawFd = -1;

extern "C" fn in_the_child() {
    ending::forget();
    if MOUNTED.load(Ordering::Relaxed) > 0 {
        CUT_OFF.store(true, Ordering::Relaxed);
    }
    for holding in &HOLDING {
        // A child of this child has other files with these numbers.
        match holding.swap(NONE, Ordering::Relaxed) {
            NONE => {}
            // SAFETY: a plain call, allowed after a fork; what owns the descriptor is not used or dropped any more.
            locked => _ = unsafe { libc::close(locked) },
        }
    }
}

/// This process's descriptors that hold a lock of a file, by proc(5).
fn locks_of(path: &Path) -> impl Iterator<Item = RawFd> + use<> {
    let file = |path: &Path| {
        fs::metadata(path)
            .map(|found| (found.dev(), found.ino()))
            .ok()
    };
    let wanted = file(path);
    let open = fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten();
    let number = |open: &DirEntry| open.file_name().to_str()?.parse::<RawFd>().ok();
    // In this order: a file of a server that hangs is not looked at.
    let locked = open.filter_map(move |open| {
        let found = number(&open)?;
        let about = fs::read_to_string(format!("/proc/self/fdinfo/{found}")).ok()?;
        about.contains("FLOCK").then_some((open, found))
    });
    locked
        .filter(move |(open, _)| wanted.is_some() && file(&open.path()) == wanted)
        .map(|(_, found)| found)
}

/// The locks of a mounted drive, which a forked child gives up as long as this exists.
pub(crate) struct Locks(Vec<&'static AtomicI32>);

impl Locks {
    pub fn of(drive: &Path) -> Self {
        let keep = |locked| {
            HOLDING.iter().find(|holding| {
                let kept =
                    holding.compare_exchange(NONE, locked, Ordering::Relaxed, Ordering::Relaxed);
                kept.is_ok()
            })
        };
        let locked = device::locked_files(drive).flat_map(|file| locks_of(&file));
        Self(locked.filter_map(keep).collect())
    }
}

impl Drop for Locks {
    fn drop(&mut self) {
        for holding in &self.0 {
            holding.store(NONE, Ordering::Relaxed);
        }
    }
}

/// Counts as a mount as long as it exists.
pub(crate) struct Mounted(());

impl Mounted {
    pub fn new() -> Self {
        static WATCH: Once = Once::new();
        // SAFETY: the handler only touches atomics and closes files, both of which a forked child may do.
        WATCH.call_once(|| _ = unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) });
        MOUNTED.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        MOUNTED.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether this process was forked from one that had a drive mounted.
pub(crate) fn is_cut_off() -> bool {
    CUT_OFF.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use std::fs::File;

    /// An NVMe namespace has two nodes, and its drive locks both.
    #[test]
    fn all_locks_of_a_drive_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["ng0n1", "nvme0n1", "nvme0n2"].map(|name| {
            let file = File::create(folder.path().join(name)).unwrap();
            file.lock().unwrap();
            file
        });
        let locks = Locks::of(&folder.path().join("ng0n1"));
        let mut held: Vec<RawFd> = locks
            .0
            .iter()
            .map(|fd| fd.load(Ordering::Relaxed))
            .collect();
        held.sort_unstable();
        let mut expected = [0, 1].map(|n| std::os::fd::AsRawFd::as_raw_fd(&files[n]));
        expected.sort_unstable();
        assert_eq!(held, expected);
    }
}
