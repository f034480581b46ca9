//! What a process that was forked may do with a drive that its parent has mounted: nothing. Both
//! would write to the same zones, each with a memory of its own of what lies in them. A fork while
//! nothing is mounted is harmless, and so is one that becomes another program at once.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub(crate) const REFUSED: &str =
    "the drive was mounted before this process was forked, and belongs to its parent";

static MOUNTED: AtomicUsize = AtomicUsize::new(0);
static CUT_OFF: AtomicBool = AtomicBool::new(false);

extern "C" fn in_the_child() {
    if MOUNTED.load(Ordering::Relaxed) > 0 {
        CUT_OFF.store(true, Ordering::Relaxed);
    }
}

/// Counts as a mount for as long as it lives.
pub(crate) struct Mounted(());

impl Mounted {
    pub fn new() -> Self {
        static WATCH: Once = Once::new();
        // SAFETY: the handler only touches atomics, which is all that a forked child may do.
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

/// Whether this is a child of the process that mounted what it has in memory.
pub(crate) fn is_cut_off() -> bool {
    CUT_OFF.load(Ordering::Relaxed)
}
