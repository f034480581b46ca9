//! The functions of `include/zonestore/bluefs.h`, which documents them.

use crate::answers::{OK, call, number, remember};
use crate::failure::{Answer, EXISTS, IO, NOT_FOUND};
use crate::file_system::{FileSystem, Pending, ReadableFile, WritableFile};
use crate::mounts::{self, Kind, Mount};
use crate::pointers::{bytes, free, give, text};
use bluefs::{BlueFs, Lifetime};
use std::ffi::{OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Handle of a file system for the C side.
pub struct Fs {
    fs: Arc<dyn FileSystem>,
    /// Set if the file system was mounted by path; the last handle unmounts it.
    _mount: Option<Arc<Mount>>,
}

/// A handle for the C++ side of a file system that the Rust side mounted and unmounts. It is freed by `zs_fs_free`,
/// which `zonestore::NewFileSystem` calls.
pub fn into_raw(fs: BlueFs) -> *mut Fs {
    let fs = Arc::new(fs);
    Box::into_raw(Box::new(Fs { fs, _mount: None }))
}

/// Handle of a file that is open for appending.
pub struct Writer(Box<dyn WritableFile>);

/// Handle of a file that is open for reading.
pub struct Reader(Box<dyn ReadableFile>);

/// Handle of a read that has been begun.
pub struct PendingRead(Pending);

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Metadata {
    size_bytes: u64,
    modified_micros: u64,
    inode: u64,
    links: u32,
    is_directory: u32,
}

/// One of many reads: the request, and its result in `got` and `code`.
#[repr(C)]
pub struct Read {
    offset: u64,
    data: *mut c_char,
    length: usize,
    got: usize,
    code: c_int,
}

/// # Safety
/// As [`give`].
unsafe fn open(out: *mut *mut Fs, mount: impl FnOnce() -> Result<Arc<Mount>, String>) -> c_int {
    let mut refused = None;
    let code = call(|| {
        match mount() {
            // SAFETY: as the caller promises.
            Ok(mount) => unsafe {
                let fs = mount.fs.clone();
                give(
                    out,
                    Fs {
                        fs,
                        _mount: Some(mount),
                    },
                );
            },
            Err(words) => refused = Some(words),
        }
        Ok(())
    });
    refused.map_or(code, |words| {
        remember(words);
        IO
    })
}

/// Makes a directory and those above it; succeeds if it exists already.
fn make_directories(fs: &dyn FileSystem, path: &str) -> Answer {
    let mut made = fs.create_directory(path);
    if made
        .as_ref()
        .is_err_and(|failure| failure.code == NOT_FOUND)
    {
        let name = path.trim_end_matches('/');
        let above = name.rfind('/').map_or("", |at| &name[..at]);
        make_directories(fs, above)?;
        made = fs.create_directory(path);
    }
    match made {
        Err(failure) if failure.code == EXISTS && fs.entry(path)?.is_directory => Ok(()),
        made => made,
    }
}

/// Takes a lock and makes the lock file, because both libraries expect it in their directory.
fn lock(fs: &dyn FileSystem, path: &str) -> Answer {
    fs.lock(path)?;
    let made = match fs.entry(path) {
        Err(failure) if failure.code == NOT_FOUND => fs.create(path).and_then(|file| file.close()),
        known => known.map(|_| ()),
    };
    if made.is_err() {
        fs.unlock(path);
    }
    made
}

// The functions below follow the header; what they require of pointers is written there.
macro_rules! entry {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $result:ty $body:block)*) => {
        $(
            $(#[$doc])*
            /// # Safety
            /// Pointers are as the header says.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
                // SAFETY: the header's contract, which the callers keep.
                #[allow(unused_unsafe)]
                unsafe { $body }
            }
        )*
    };
}

entry! {
    /// Mounts a drive by path.
    fn zs_fs_open(path: *const c_char, length: usize, out: *mut *mut Fs) -> c_int {
        let path = Path::new(OsStr::from_bytes(bytes(path, length)));
        open(out, || mounts::open(path, Kind::BlueFs))
    }
    /// Mounts the drive that the environment names.
    fn zs_fs_open_named(out: *mut *mut Fs) -> c_int { open(out, mounts::open_named) }
    /// Ends all mounts by path; later calls of their users fail.
    fn zs_fs_unmount_all() -> () {
        number(|| { mounts::stop_all(); 0 });
    }
    /// Frees a file system handle.
    fn zs_fs_free(fs: *mut Fs) -> () { free(fs) }
    /// Free bytes of the drive.
    fn zs_fs_free_bytes(fs: *const Fs) -> u64 { number(|| (*fs).fs.free_bytes()) }
    /// Identity of the mount.
    fn zs_fs_identity(fs: *const Fs) -> u64 {
        number(|| (*fs).fs.identity())
    }

    /// Creates a file.
    fn zs_create(fs: *const Fs, path: *const c_char, length: usize, out: *mut *mut Writer) -> c_int {
        call(|| {
            give(out, Writer((*fs).fs.create(text(path, length)?)?));
            Ok(())
        })
    }
    /// Opens a file to append.
    fn zs_reopen(fs: *const Fs, path: *const c_char, length: usize, out: *mut *mut Writer) -> c_int {
        call(|| {
            give(out, Writer((*fs).fs.reopen(text(path, length)?)?));
            Ok(())
        })
    }
    /// Appends bytes.
    fn zs_writer_append(writer: *const Writer, data: *const c_char, length: usize) -> c_int {
        call(|| (*writer).0.append(bytes(data, length)))
    }
    /// Writes out buffered bytes as far as the file system's `flush` does.
    fn zs_writer_flush(writer: *const Writer) -> c_int { call(|| (*writer).0.flush()) }
    /// Starts writing out, without waiting for durability.
    fn zs_writer_range_sync(writer: *const Writer) -> c_int { call(|| (*writer).0.range_sync()) }
    /// Makes everything appended so far durable.
    fn zs_writer_sync(writer: *const Writer) -> c_int { call(|| (*writer).0.sync()) }
    /// Truncates the file.
    fn zs_writer_truncate(writer: *const Writer, size: u64) -> c_int { call(|| (*writer).0.truncate(size)) }
    /// Closes the file.
    fn zs_writer_close(writer: *const Writer) -> c_int { call(|| (*writer).0.close()) }
    /// Bytes in the file.
    fn zs_writer_size(writer: *const Writer) -> u64 { number(|| (*writer).0.size()) }
    /// Inode of the file.
    fn zs_writer_inode(writer: *const Writer) -> u64 { number(|| (*writer).0.inode()) }
    /// Sets the expected lifetime, 0 to 4 as in the header.
    fn zs_writer_set_lifetime(writer: *const Writer, lifetime: c_int) -> () {
        let lifetime = match lifetime {
            1 => Lifetime::Short,
            2 => Lifetime::Medium,
            3 => Lifetime::Long,
            4 => Lifetime::Extreme,
            _ => Lifetime::Unknown,
        };
        number(|| { (*writer).0.set_lifetime(lifetime); 0 });
    }
    /// Sets the expected size in bytes.
    fn zs_writer_set_expected_size(writer: *const Writer, size: u64) -> () {
        number(|| { (*writer).0.set_expected_size(size); 0 });
    }
    /// Sets whether no client waits for the file.
    fn zs_writer_set_background(writer: *const Writer, background: c_int) -> () {
        number(|| { (*writer).0.set_background(background != 0); 0 });
    }
    /// Frees a writer.
    fn zs_writer_free(writer: *mut Writer) -> () { free(writer) }

    /// Opens a file for reading.
    fn zs_open(fs: *const Fs, path: *const c_char, length: usize, out: *mut *mut Reader) -> c_int {
        call(|| {
            give(out, Reader((*fs).fs.open(text(path, length)?)?));
            Ok(())
        })
    }
    /// Reads up to `length` bytes.
    fn zs_reader_read(reader: *const Reader, offset: u64, data: *mut c_char, length: usize, got: *mut usize) -> c_int {
        call(|| {
            *got = 0;
            if length > 0 {
                let buffer = std::slice::from_raw_parts_mut(data.cast::<u8>(), length);
                *got = (*reader).0.read_at(offset, buffer)?;
            }
            Ok(())
        })
    }
    /// Does many reads of one file at once; each has a code of its own.
    fn zs_reader_read_many(reader: *const Reader, reads: *mut Read, count: usize) -> () {
        let reads = if count == 0 { &mut [] } else { std::slice::from_raw_parts_mut(reads, count) };
        for read in reads.iter_mut() {
            (read.got, read.code) = (0, OK);
        }
        let mut results = Vec::new();
        let code_of_all = call(|| {
            let mut asked: Vec<(u64, &mut [u8])> = reads
                .iter()
                .map(|read| match read.length {
                    0 => (read.offset, &mut [][..]),
                    n => (read.offset, std::slice::from_raw_parts_mut(read.data.cast::<u8>(), n)),
                })
                .collect();
            results = (*reader).0.read_many(&mut asked);
            Ok(())
        });
        for (index, read) in reads.iter_mut().enumerate() {
            match results.get(index) {
                Some(Ok(got)) => read.got = *got,
                Some(Err(failure)) => {
                    remember(failure.words.clone());
                    read.code = failure.code;
                }
                None => read.code = code_of_all,
            }
        }
    }
    /// Begins a read.
    fn zs_reader_read_later(reader: *const Reader, offset: u64, length: usize, out: *mut *mut PendingRead) -> c_int {
        call(|| {
            give(out, PendingRead((*reader).0.read_later(offset, length)));
            Ok(())
        })
    }
    /// Waits for a read, and frees it.
    fn zs_pending_wait(pending: *mut PendingRead, data: *mut c_char, length: usize, got: *mut usize) -> c_int {
        call(|| {
            *got = 0;
            let bytes = (Box::from_raw(pending).0)()?;
            let count = bytes.len().min(length);
            if count > 0 {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), data.cast::<u8>(), count);
            }
            *got = count;
            Ok(())
        })
    }
    /// Frees a read whose result is no longer wanted.
    fn zs_pending_free(pending: *mut PendingRead) -> () { free(pending) }
    /// Stops putting what is read into the cache.
    fn zs_reader_set_uncached(reader: *mut Reader) -> () {
        number(|| { (*reader).0.set_uncached(); 0 });
    }
    /// Bytes in the file.
    fn zs_reader_size(reader: *const Reader) -> u64 { number(|| (*reader).0.size()) }
    /// Inode of the file.
    fn zs_reader_inode(reader: *const Reader) -> u64 { number(|| (*reader).0.inode()) }
    /// Frees a reader.
    fn zs_reader_free(reader: *mut Reader) -> () { free(reader) }

    /// Size, times and kind of a file or directory.
    fn zs_stat(fs: *const Fs, path: *const c_char, length: usize, out: *mut Metadata) -> c_int {
        call(|| {
            let m = (*fs).fs.entry(text(path, length)?)?;
            *out = Metadata {
                size_bytes: m.size,
                modified_micros: m.modified_micros,
                inode: m.inode,
                links: m.links,
                is_directory: m.is_directory.into(),
            };
            Ok(())
        })
    }
    /// Whether two paths lead to the same file or directory.
    fn zs_same(fs: *const Fs, first: *const c_char, first_length: usize, second: *const c_char, second_length: usize, same: *mut c_int) -> c_int {
        call(|| {
            *same = 0;
            let (first, second) = (text(first, first_length)?, text(second, second_length)?);
            *same = (*fs).fs.is_same(first, second)?.into();
            Ok(())
        })
    }
    /// Calls `each` with every name in a directory.
    fn zs_list(
        fs: *const Fs,
        path: *const c_char,
        length: usize,
        each: extern "C" fn(*mut c_void, *const c_char, usize),
        context: *mut c_void,
    ) -> c_int {
        call(|| {
            for name in (*fs).fs.list(text(path, length)?)? {
                each(context, name.as_ptr().cast(), name.len());
            }
            Ok(())
        })
    }
    /// Makes a directory.
    fn zs_make_directory(fs: *const Fs, path: *const c_char, length: usize) -> c_int {
        call(|| (*fs).fs.create_directory(text(path, length)?))
    }
    /// Makes a directory and those above it.
    fn zs_make_directories(fs: *const Fs, path: *const c_char, length: usize) -> c_int {
        call(|| make_directories(&*(*fs).fs, text(path, length)?))
    }
    /// Removes a directory.
    fn zs_remove_directory(fs: *const Fs, path: *const c_char, length: usize) -> c_int {
        call(|| (*fs).fs.remove_directory(text(path, length)?))
    }
    /// Removes a name of a file.
    fn zs_remove(fs: *const Fs, path: *const c_char, length: usize) -> c_int {
        call(|| (*fs).fs.delete(text(path, length)?))
    }
    /// Renames a file or directory.
    fn zs_rename(fs: *const Fs, from: *const c_char, from_length: usize, to: *const c_char, to_length: usize) -> c_int {
        call(|| (*fs).fs.rename(text(from, from_length)?, text(to, to_length)?))
    }
    /// Gives a file another name.
    fn zs_link(fs: *const Fs, from: *const c_char, from_length: usize, to: *const c_char, to_length: usize) -> c_int {
        call(|| (*fs).fs.link(text(from, from_length)?, text(to, to_length)?))
    }
    /// Truncates a file by its path.
    fn zs_truncate(fs: *const Fs, path: *const c_char, length: usize, size: u64) -> c_int {
        call(|| (*fs).fs.truncate(text(path, length)?, size))
    }
    /// Makes all changes of names durable.
    fn zs_sync_metadata(fs: *const Fs) -> c_int { call(|| (*fs).fs.sync_metadata()) }
    /// Takes a lock.
    fn zs_lock(fs: *const Fs, path: *const c_char, length: usize) -> c_int {
        call(|| lock(&*(*fs).fs, text(path, length)?))
    }
    /// Releases a lock.
    fn zs_unlock(fs: *const Fs, path: *const c_char, length: usize) -> () {
        if let Ok(path) = text(path, length) {
            number(|| { (*fs).fs.unlock(path); 0 });
        }
    }
}
