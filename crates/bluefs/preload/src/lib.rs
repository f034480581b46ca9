//! `libzonestore_preload.so`: when it is preloaded into a program, `rocksdb::FileSystem::Default()` and
//! `leveldb::Env::Default()` return the drive, by the plug-in that the environment names.
//!
//! It is linked with neither library. A library linked here would take precedence over those that programs and Python's
//! modules contain, whose classes have other layouts, and a plug-in fits only the library that it was built with. So a
//! caller gets the default that it would get without this library, unless that default is of the plug-in's own
//! librocksdb.so or libleveldb.so; only then is the plug-in loaded, after all other libraries.

mod caller;
mod plugin;

use plugin::Plugin;
use std::ffi::{CStr, c_void};

static LEVELDB: Plugin = Plugin::new(
    "ZONESTORE_LEVELDB_LIB",
    LEVELDB_DEFAULT,
    "libleveldb.so",
    c"zonestore_leveldb_default",
);
const LEVELDB_DEFAULT: &CStr = c"_ZN7leveldb3Env7DefaultEv";

/// `static leveldb::Env* leveldb::Env::Default()`.
#[unsafe(export_name = "_ZN7leveldb3Env7DefaultEv")]
pub extern "C" fn leveldb_default() -> *mut c_void {
    let theirs = caller::without_us(LEVELDB_DEFAULT);
    // SAFETY: what has this name is this function, of the caller's own library.
    let own: extern "C" fn() -> *mut c_void = unsafe { std::mem::transmute(theirs) };
    match LEVELDB.answer(theirs) {
        None => own(),
        Some(answer) => {
            // SAFETY: the plug-in declares it like this.
            let answer: extern "C" fn(*mut c_void) -> *mut c_void =
                unsafe { std::mem::transmute(answer) };
            answer(own())
        }
    }
}

/// On x86-64 the address for a returned object that is not trivial is passed as the first argument, and is returned. On
/// other architectures it is passed in another register, which no function here can name.
#[cfg(target_arch = "x86_64")]
mod rocksdb {
    use super::{CStr, Plugin, c_void, caller};

    static ROCKSDB: Plugin = Plugin::new(
        "ZONESTORE_ROCKSDB_LIB",
        DEFAULT,
        "librocksdb.so",
        c"zonestore_rocksdb_default",
    );
    const DEFAULT: &CStr = c"_ZN7rocksdb10FileSystem7DefaultEv";
    type Own = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

    /// `static std::shared_ptr<FileSystem> rocksdb::FileSystem::Default()`.
    ///
    /// # Safety
    /// `answer` is where a `std::shared_ptr` is to be built, as the C++ ABI says.
    #[unsafe(export_name = "_ZN7rocksdb10FileSystem7DefaultEv")]
    pub unsafe extern "C" fn rocksdb_default(answer: *mut c_void) -> *mut c_void {
        let theirs = caller::without_us(DEFAULT);
        // SAFETY: what has this name is this function, of the caller's own library; and the plug-in
        // declares its own like this.
        unsafe {
            let own: Own = std::mem::transmute(theirs);
            match ROCKSDB.answer(theirs) {
                None => own(answer),
                Some(ours) => {
                    let ours: unsafe extern "C" fn(*mut c_void, Own) -> *mut c_void =
                        std::mem::transmute(ours);
                    ours(answer, own)
                }
            }
        }
    }
}
