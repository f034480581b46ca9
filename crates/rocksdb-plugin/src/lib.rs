//! `libzonestore_rocksdb.so`: preloaded into an unmodified RocksDB program, it makes the scheme
//! `zonestore:///path/of/drive` known to `--fs_uri` and `--env_uri`. Programs that take no address get the
//! drive as `rocksdb::FileSystem::Default()`, if the environment asks for it. All of it is in
//! `bluefs-rocksdb`.

pub use bluefs_rocksdb::*;

#[cfg(target_arch = "x86_64")]
mod default_file_system {
    use std::ffi::c_void;

    unsafe extern "C" {
        fn zonestore_rocksdb_default_file_system(answer: *mut c_void) -> *mut c_void;
    }

    /// `static std::shared_ptr<FileSystem> rocksdb::FileSystem::Default()`. Only Rust functions leave a
    /// library that Rust links, so the name is given here. On x86-64 the place of an answer that is not
    /// plain is the first argument, and is returned; elsewhere that is another register.
    ///
    /// # Safety
    /// `answer` is where a `std::shared_ptr` is to be built, as the C++ ABI says.
    #[unsafe(export_name = "_ZN7rocksdb10FileSystem7DefaultEv")]
    pub unsafe extern "C" fn default_file_system(answer: *mut c_void) -> *mut c_void {
        // SAFETY: as the caller promises.
        unsafe { zonestore_rocksdb_default_file_system(answer) }
    }
}
