//! Cuts a forked process off from the drives that its parent has mounted. Both would write to the same zones, each with
//! its own view in memory of what lies in them. A fork while nothing is mounted is harmless, and so is one that is
//! followed by exec at once.

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

/// Counts as a mount as long as it exists.
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

/// Whether this process was forked from one that had a drive mounted.
pub(crate) fn is_cut_off() -> bool {
    CUT_OFF.load(Ordering::Relaxed)
}
