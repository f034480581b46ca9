//! `libzonestore_leveldb.so`: preloaded into an unmodified LevelDB program, it answers
//! `leveldb::Env::Default()`, and with that the program's databases lie on the drive that
//! `ZONESTORE_URI` names. Without that variable the program gets LevelDB's own environment.

pub use bluefs_c::*;
use std::ffi::c_void;

unsafe extern "C" {
    safe fn zonestore_leveldb_env() -> *mut c_void;
}

/// `static leveldb::Env* leveldb::Env::Default()`. Only Rust functions leave a library that Rust
/// links, so the name is given here.
#[unsafe(export_name = "_ZN7leveldb3Env7DefaultEv")]
pub extern "C" fn default_env() -> *mut c_void {
    zonestore_leveldb_env()
}
