//! The end of a program that was started to use a drive: if it never did, its databases lie elsewhere, and
//! it must not end as if all were well.

use std::ffi::{c_int, c_void};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

/// Which process it is about: not the children that inherit the library.
const PROGRAM: &str = "ZONESTORE_PROGRAM";

/// The drive file as it was at the start: whoever mounts it writes to it, in this process or another.
static AT_THE_START: OnceLock<Metadata> = OnceLock::new();

unsafe extern "C" {
    fn on_exit(run: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Called when a preloaded library is loaded.
pub(crate) fn starts() {
    let this = std::process::id().to_string();
    if std::env::var_os(PROGRAM).is_none_or(|program| program != *this) {
        return;
    }
    let drive = crate::mounts::named().and_then(|path| std::fs::metadata(path).ok());
    if let Some(drive) = drive.filter(Metadata::is_file)
        && AT_THE_START.set(drive).is_ok()
    {
        // SAFETY: the function lives as long as the library, which is never unloaded.
        unsafe { on_exit(ends, std::ptr::null_mut()) };
    }
}

/// Registered before `main`, so it runs when all of the program's own handlers have.
extern "C" fn ends(code: c_int, _: *mut c_void) {
    let Some(path) = crate::mounts::named() else {
        return;
    };
    let written = |drive: &Metadata| (drive.mtime(), drive.mtime_nsec(), drive.ino());
    let now = std::fs::metadata(&path).ok();
    let is_unused = now.as_ref().map(written) == AT_THE_START.get().map(written);
    let is_program =
        std::env::var_os(PROGRAM).is_some_and(|p| p == *std::process::id().to_string());
    if code == 0 && is_unused && is_program {
        let words = format!(
            "zonestore: the program ended without opening {}; if it has a database, that lies elsewhere \
             (docs/programs.md)\n",
            path.display()
        );
        // SAFETY: plain calls of the C library. Its buffers are written out, for `_exit` does not do that.
        unsafe {
            libc::fflush(std::ptr::null_mut());
            libc::write(2, words.as_ptr().cast(), words.len());
            libc::_exit(1);
        }
    }
}
