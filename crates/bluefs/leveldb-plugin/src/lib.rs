//! `libzonestore_leveldb.so`: in a LevelDB program, where `libzonestore_preload.so` loads it, it gives what
//! `leveldb::Env::Default()` answers, and with that the program's databases lie on the drive that
//! `ZONESTORE_URI` names. Without that variable the program gets LevelDB's own environment.

pub use bluefs_c::*;
use std::ffi::c_void;

unsafe extern "C" {
    fn zonestore_leveldb_env(own: *mut c_void) -> *mut c_void;
}

/// The environment; `own` is LevelDB's. Only Rust functions leave a library that Rust links, so the name is
/// given here.
///
/// # Safety
/// `own` is a `leveldb::Env` that lives as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zonestore_leveldb_default(own: *mut c_void) -> *mut c_void {
    // SAFETY: as the caller promises.
    unsafe { zonestore_leveldb_env(own) }
}
