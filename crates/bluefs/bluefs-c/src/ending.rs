//! The end of the process: the thread that ends it unmounts the drives, and calls of other threads do not come back.
//!
//! An error would be news to a library whose static objects are gone by then: RocksDB logs it with its destroyed clock.
//! RocksDB's own threads come back, for if there are any left, RocksDB has yet to wait for them.

use runtime::sync::{Mutex, MutexGuard};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicI32, Ordering};

/// Number of the thread that ends the process; 0: none does.
static ENDS: AtomicI32 = AtomicI32::new(0);
/// Held by that thread while it unmounts.
static UNMOUNTING: LazyLock<Mutex<()>> = LazyLock::new(Mutex::default);

fn this_thread() -> i32 {
    // SAFETY: a plain call.
    unsafe { libc::gettid() }
}

/// Whether RocksDB made this thread: it names its threads.
fn is_of_rocksdb() -> bool {
    let mut name = [0; 16];
    // SAFETY: the call writes a name of 16 bytes at most, with its end.
    let read = unsafe {
        libc::pthread_getname_np(libc::pthread_self(), name.as_mut_ptr().cast(), name.len())
    };
    read == 0 && name.starts_with(b"rocksdb:")
}

/// This thread ends the process from here on. Waits for another one that is unmounting.
pub(crate) fn begin() -> MutexGuard<'static, ()> {
    let alone = UNMOUNTING.lock();
    ENDS.store(this_thread(), Ordering::Release);
    alone
}

/// A forked child does not end with its parent.
pub(crate) fn forget() {
    ENDS.store(0, Ordering::Release);
}

/// Does not come back in a thread other than the one that ends the process. The caller holds no lock.
pub(crate) fn hold_others() {
    let is_held = |ends| ends != 0 && ends != this_thread() && !is_of_rocksdb();
    while is_held(ENDS.load(Ordering::Acquire)) {
        // SAFETY: a plain call, which comes back after a signal.
        unsafe { libc::pause() };
    }
}
