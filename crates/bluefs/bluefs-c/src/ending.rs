//! The end of the process: the thread that ends it unmounts the drives, and calls of other threads do not come back.
//!
//! An error would be news to a library whose static objects are gone by then: RocksDB logs it with its destroyed clock.

use std::sync::atomic::{AtomicI32, Ordering};

/// Number of the thread that ends the process; 0: none does.
static ENDS: AtomicI32 = AtomicI32::new(0);

fn this_thread() -> i32 {
    // SAFETY: a plain call.
    unsafe { libc::gettid() }
}

/// This thread ends the process.
pub(crate) fn begin() {
    ENDS.store(this_thread(), Ordering::Release);
}

/// Does not come back in a thread other than the one that ends the process. The caller holds no lock.
pub(crate) fn hold_others() {
    let ends = ENDS.load(Ordering::Acquire);
    while ends != 0 && ends != this_thread() {
        // SAFETY: a plain call, which comes back after a signal.
        unsafe { libc::pause() };
    }
}
