//! Results of calls through the ABI: a code, and a message that is kept for the calling thread.

use crate::failure::{Answer, Failure, IO};
use crate::pointers::text;
use crate::{ending, forks};
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

pub(crate) const OK: c_int = 0;
thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

pub(crate) fn remember(words: String) {
    let words = CString::new(words.replace('\0', " ")).unwrap_or_default();
    // The main thread's variable is gone when static objects are destroyed.
    let _ = LAST_ERROR.try_with(|last| last.replace(words));
}

/// Runs one call. A panic does not cross the ABI, and an error leaves its message in `LAST_ERROR`.
pub(crate) fn call(run: impl FnOnce() -> Answer) -> c_int {
    if forks::is_cut_off() {
        remember(forks::REFUSED.to_owned());
        return IO;
    }
    ending::hold_others();
    let done = catch_unwind(AssertUnwindSafe(run));
    // The end may have begun meanwhile.
    ending::hold_others();
    match done {
        Ok(Ok(())) => OK,
        Ok(Err(Failure { code, words })) => {
            remember(words);
            code
        }
        Err(_) => {
            remember("a bug in ZoneStore; its message is on standard error".to_owned());
            IO
        }
    }
}

/// Runs a call that returns a number; 0 if it fails or panics, or in a process that is cut off by a fork.
pub(crate) fn number(run: impl FnOnce() -> Answer<u64>) -> u64 {
    let mut found = 0;
    call(|| {
        found = run()?;
        Ok(())
    });
    found
}

/// See the header. # Safety: none needed.
#[unsafe(no_mangle)]
pub extern "C" fn zs_last_error() -> *const c_char {
    LAST_ERROR
        .try_with(|last| last.borrow().as_ptr())
        .unwrap_or(c"it failed while the process was ending".as_ptr())
}

/// See the header.
///
/// # Safety
/// `path` is `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zs_last_error_of(path: *const c_char, length: usize) -> *const c_char {
    // SAFETY: as the caller promises.
    let path = unsafe { text(path, length) }.unwrap_or_default();
    // The message has the path in its normalized form.
    let behind_path = |words: &CString| {
        let words = words.to_str().ok()?;
        let rest = words.strip_prefix(&path.replace("//", "/"))?;
        Some(rest.strip_prefix(": ")?.as_ptr().cast())
    };
    LAST_ERROR
        .try_with(|last| behind_path(&last.borrow()))
        .ok()
        .flatten()
        .unwrap_or_else(|| zs_last_error())
}
