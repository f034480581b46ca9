//! `libzonestore_leveldb.so`: `libzonestore_preload.so` loads it into LevelDB programs, and it provides the result of
//! `leveldb::Env::Default()`, so that the program's databases lie on the drive that `ZONESTORE_URI` names.
//!
//! Without that variable the program gets LevelDB's own environment.

pub use bluefs_c::*;
use std::ffi::c_void;

unsafe extern "C" {
    fn zonestore_leveldb_env(own: *mut c_void) -> *mut c_void;
}

/// Returns the environment; `own` is LevelDB's. A library that Rust links exports only Rust functions, so the C++
/// function is exported under this name here.
///
/// # Safety
/// `own` is a `leveldb::Env` that lives as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zonestore_leveldb_default(own: *mut c_void) -> *mut c_void {
    // SAFETY: as the caller promises.
    unsafe { zonestore_leveldb_env(own) }
}
