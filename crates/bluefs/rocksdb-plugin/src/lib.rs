//! `libzonestore_rocksdb.so`: makes the scheme `zonestore:///path/of/drive` known to RocksDB programs, for `--fs_uri`
//! and `--env_uri`.
//!
//! For programs that take no address, `libzonestore_preload.so` loads it and it provides the drive as
//! `rocksdb::FileSystem::Default()`. The implementation is in `bluefs-rocksdb`.

pub use bluefs_rocksdb::*;
use std::ffi::c_void;

unsafe extern "C" {
    fn zonestore_rocksdb_default_file_system(answer: *mut c_void, own: *mut c_void) -> *mut c_void;
}

/// Builds the default file system in `answer` and returns `answer`; `own` is RocksDB's `FileSystem::Default()`.
///
/// A library that Rust links exports only Rust functions, so the C++ function is exported under this name here.
///
/// # Safety
/// `answer` is where a `std::shared_ptr` is to be built, and `own` what it is said to be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn zonestore_rocksdb_default(
    answer: *mut c_void,
    own: *mut c_void,
) -> *mut c_void {
    // SAFETY: as the caller promises.
    unsafe { zonestore_rocksdb_default_file_system(answer, own) }
}
