//! `libzonestore_rocksdb.so`: in a RocksDB program, it makes the scheme `zonestore:///path/of/drive` known to
//! `--fs_uri` and `--env_uri`. In programs that take no address it is loaded by `libzonestore_preload.so`,
//! and gives the drive as `rocksdb::FileSystem::Default()`. All of it is in `bluefs-rocksdb`.

pub use bluefs_rocksdb::*;
use std::ffi::c_void;

unsafe extern "C" {
    fn zonestore_rocksdb_default_file_system(answer: *mut c_void, own: *mut c_void) -> *mut c_void;
}

/// Builds the default file system in `answer`, which it also returns; `own` is RocksDB's
/// `FileSystem::Default()`. Only Rust functions leave a library that Rust links, so the name is given here.
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
