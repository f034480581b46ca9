//! The functions of `include/zonestore/bluefs.h`, which documents them.

use crate::answers::{OK, call, number, remember};
use crate::failure::{Answer, EXISTS, Failure, NOT_FOUND};
use crate::file_system::{FileSystem, Pending, ReadableFile, WritableFile};
use crate::mounts::{self, Kind, Mount};
use crate::pointers::{at, buffer, bytes, free, give, null, text, writable};
use crate::{ending, forks};
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
unsafe fn open(out: *mut *mut Fs, mount: impl FnOnce() -> Answer<Arc<Mount>>) -> c_int {
    call(|| {
        let out = writable(out)?;
        let mount = mount()?;
        let fs = mount.fs.clone();
        let _mount = Some(mount);
        // SAFETY: as the caller promises.
        unsafe { give(out, Fs { fs, _mount }) };
        Ok(())
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
        open(out, || {
            let path = Path::new(OsStr::from_bytes(bytes(path, length)?));
            mounts::open(path, Kind::BlueFs).map_err(Failure::io)
        })
    }
    /// Mounts the drive that the environment names.
    fn zs_fs_open_named(out: *mut *mut Fs) -> c_int { open(out, || mounts::open_named().map_err(Failure::io)) }
    /// Ends all mounts by path; later calls of this thread fail, and those of others do not come back.
    fn zs_fs_unmount_all() -> () {
        if forks::is_cut_off() {
            return;
        }
        let _alone = ending::begin();
        number(|| { mounts::stop_all(); Ok(0) });
    }
    /// Frees a file system handle.
    fn zs_fs_free(fs: *mut Fs) -> () { free(fs) }
    /// Free bytes of the drive.
    fn zs_fs_free_bytes(fs: *const Fs) -> u64 { number(|| Ok(at(fs)?.fs.free_bytes())) }
    /// Identity of the mount.
    fn zs_fs_identity(fs: *const Fs) -> u64 {
        number(|| Ok(at(fs)?.fs.identity()))
    }

    /// Creates a file.
    fn zs_create(fs: *const Fs, path: *const c_char, length: usize, out: *mut *mut Writer) -> c_int {
        call(|| {
            give(writable(out)?, Writer(at(fs)?.fs.create(text(path, length)?)?));
            Ok(())
        })
    }
    /// Opens a file to append.
    fn zs_reopen(fs: *const Fs, path: *const c_char, length: usize, out: *mut *mut Writer) -> c_int {
        call(|| {
            give(writable(out)?, Writer(at(fs)?.fs.reopen(text(path, length)?)?));
            Ok(())
        })
    }
    /// Appends bytes.
    fn zs_writer_append(writer: *const Writer, data: *const c_char, length: usize) -> c_int {
        call(|| at(writer)?.0.append(bytes(data, length)?))
    }
    /// Writes out buffered bytes as far as the file system's `flush` does.
    fn zs_writer_flush(writer: *const Writer) -> c_int { call(|| at(writer)?.0.flush()) }
    /// Starts writing out, without waiting for durability.
    fn zs_writer_range_sync(writer: *const Writer) -> c_int { call(|| at(writer)?.0.range_sync()) }
    /// Makes everything appended so far durable.
    fn zs_writer_sync(writer: *const Writer) -> c_int { call(|| at(writer)?.0.sync()) }
    /// Truncates the file.
    fn zs_writer_truncate(writer: *const Writer, size: u64) -> c_int { call(|| at(writer)?.0.truncate(size)) }
    /// Closes the file.
    fn zs_writer_close(writer: *const Writer) -> c_int { call(|| at(writer)?.0.close()) }
    /// Bytes in the file.
    fn zs_writer_size(writer: *const Writer) -> u64 { number(|| Ok(at(writer)?.0.size())) }
    /// Inode of the file.
    fn zs_writer_inode(writer: *const Writer) -> u64 { number(|| Ok(at(writer)?.0.inode())) }
    /// Sets the expected lifetime, 0 to 4 as in the header.
    fn zs_writer_set_lifetime(writer: *const Writer, lifetime: c_int) -> () {
        let lifetime = match lifetime {
            1 => Lifetime::Short,
            2 => Lifetime::Medium,
            3 => Lifetime::Long,
            4 => Lifetime::Extreme,
            _ => Lifetime::Unknown,
        };
        number(|| { at(writer)?.0.set_lifetime(lifetime); Ok(0) });
    }
    /// Sets the expected size in bytes.
    fn zs_writer_set_expected_size(writer: *const Writer, size: u64) -> () {
        number(|| { at(writer)?.0.set_expected_size(size); Ok(0) });
    }
    /// Sets whether no client waits for the file.
    fn zs_writer_set_background(writer: *const Writer, background: c_int) -> () {
        number(|| { at(writer)?.0.set_background(background != 0); Ok(0) });
    }
    /// Frees a writer.
    fn zs_writer_free(writer: *mut Writer) -> () { free(writer) }

    /// Opens a file for reading.
    fn zs_open(fs: *const Fs, path: *const c_char, length: usize, out: *mut *mut Reader) -> c_int {
        call(|| {
            give(writable(out)?, Reader(at(fs)?.fs.open(text(path, length)?)?));
            Ok(())
        })
    }
    /// Reads up to `length` bytes.
    fn zs_reader_read(reader: *const Reader, offset: u64, data: *mut c_char, length: usize, got: *mut usize) -> c_int {
        call(|| {
            let got = writable(got)?;
            *got = 0;
            let buffer = buffer(data, length)?;
            if length > 0 {
                *got = at(reader)?.0.read_at(offset, buffer)?;
            }
            Ok(())
        })
    }
    /// Does many reads of one file at once; each has a code of its own.
    fn zs_reader_read_many(reader: *const Reader, reads: *mut Read, count: usize) -> () {
        let reads = match count {
            0 => &mut [],
            _ if reads.is_null() => return,
            _ => std::slice::from_raw_parts_mut(reads, count),
        };
        for read in reads.iter_mut() {
            (read.got, read.code) = (0, OK);
        }
        let mut results: Vec<Answer<usize>> = Vec::new();
        let code_of_all = call(|| {
            let reader = at(reader)?;
            let of = |read: &Read| Ok::<_, Failure>((read.offset, buffer(read.data, read.length)?));
            let mut asked: Vec<_> = reads.iter().map(of).collect::<Result<_, _>>()?;
            results = reader.0.read_many(&mut asked);
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
            give(writable(out)?, PendingRead(at(reader)?.0.read_later(offset, length)));
            Ok(())
        })
    }
    /// Waits for a read, and frees it.
    fn zs_pending_wait(pending: *mut PendingRead, data: *mut c_char, length: usize, got: *mut usize) -> c_int {
        call(|| {
            let pending = Box::from_raw(writable(pending)?);
            let (got, buffer) = (writable(got)?, buffer(data, length)?);
            *got = 0;
            let bytes = (pending.0)()?;
            let count = bytes.len().min(length);
            buffer[..count].copy_from_slice(&bytes[..count]);
            *got = count;
            Ok(())
        })
    }
    /// Frees a read whose result is no longer wanted.
    fn zs_pending_free(pending: *mut PendingRead) -> () { free(pending) }
    /// Stops putting what is read into the cache.
    fn zs_reader_set_uncached(reader: *mut Reader) -> () {
        number(|| { (*writable(reader)?).0.set_uncached(); Ok(0) });
    }
    /// Bytes in the file.
    fn zs_reader_size(reader: *const Reader) -> u64 { number(|| Ok(at(reader)?.0.size())) }
    /// Inode of the file.
    fn zs_reader_inode(reader: *const Reader) -> u64 { number(|| Ok(at(reader)?.0.inode())) }
    /// Frees a reader.
    fn zs_reader_free(reader: *mut Reader) -> () { free(reader) }

    /// Size, times and kind of a file or directory.
    fn zs_stat(fs: *const Fs, path: *const c_char, length: usize, out: *mut Metadata) -> c_int {
        call(|| {
            let m = at(fs)?.fs.entry(text(path, length)?)?;
            *writable(out)? = Metadata {
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
            let same = writable(same)?;
            *same = 0;
            let (first, second) = (text(first, first_length)?, text(second, second_length)?);
            *same = at(fs)?.fs.is_same(first, second)?.into();
            Ok(())
        })
    }
    /// Calls `each` with every name in a directory.
    fn zs_list(
        fs: *const Fs,
        path: *const c_char,
        length: usize,
        each: Option<extern "C" fn(*mut c_void, *const c_char, usize)>,
        context: *mut c_void,
    ) -> c_int {
        call(|| {
            let each = each.ok_or_else(null)?;
            for name in at(fs)?.fs.list(text(path, length)?)? {
                each(context, name.as_ptr().cast(), name.len());
            }
            Ok(())
        })
    }
    /// Makes a directory.
    fn zs_make_directory(fs: *const Fs, path: *const c_char, length: usize) -> c_int {
        call(|| at(fs)?.fs.create_directory(text(path, length)?))
    }
    /// Makes a directory and those above it.
    fn zs_make_directories(fs: *const Fs, path: *const c_char, length: usize) -> c_int {
        call(|| make_directories(&*at(fs)?.fs, text(path, length)?))
    }
    /// Removes a directory.
    fn zs_remove_directory(fs: *const Fs, path: *const c_char, length: usize) -> c_int {
        call(|| at(fs)?.fs.remove_directory(text(path, length)?))
    }
    /// Removes a name of a file.
    fn zs_remove(fs: *const Fs, path: *const c_char, length: usize) -> c_int {
        call(|| at(fs)?.fs.delete(text(path, length)?))
    }
    /// Renames a file or directory.
    fn zs_rename(fs: *const Fs, from: *const c_char, from_length: usize, to: *const c_char, to_length: usize) -> c_int {
        call(|| at(fs)?.fs.rename(text(from, from_length)?, text(to, to_length)?))
    }
    /// Gives a file another name.
    fn zs_link(fs: *const Fs, from: *const c_char, from_length: usize, to: *const c_char, to_length: usize) -> c_int {
        call(|| at(fs)?.fs.link(text(from, from_length)?, text(to, to_length)?))
    }
    /// Truncates a file by its path.
    fn zs_truncate(fs: *const Fs, path: *const c_char, length: usize, size: u64) -> c_int {
        call(|| at(fs)?.fs.truncate(text(path, length)?, size))
    }
    /// Makes all changes of names durable.
    fn zs_sync_metadata(fs: *const Fs) -> c_int { call(|| at(fs)?.fs.sync_metadata()) }
    /// Takes a lock.
    fn zs_lock(fs: *const Fs, path: *const c_char, length: usize) -> c_int {
        call(|| lock(&*at(fs)?.fs, text(path, length)?))
    }
    /// Releases a lock.
    fn zs_unlock(fs: *const Fs, path: *const c_char, length: usize) -> () {
        number(|| { at(fs)?.fs.unlock(text(path, length)?); Ok(0) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::{null, null_mut};

    #[test]
    fn a_null_pointer_is_an_error_and_not_the_end_of_the_process() {
        let path = c"/a".as_ptr();
        let (mut number, mut byte) = (1, 0);
        let fs: *const Fs = null();
        let writer: *mut Writer = null_mut();
        let reader: *mut Reader = null_mut();
        // SAFETY: the functions look for null pointers, and all others are good for a byte.
        let (codes, numbers) = unsafe {
            let codes = [
                zs_fs_open(null(), 1, null_mut()),
                zs_fs_open(null(), 1, &mut null_mut()),
                zs_fs_open_named(null_mut()),
                zs_create(fs, path, 2, null_mut()),
                zs_create(fs, null(), 2, &mut null_mut()),
                zs_reopen(fs, path, 2, &mut null_mut()),
                zs_writer_append(writer, path, 1),
                zs_writer_append(writer, null(), 1),
                zs_writer_flush(writer),
                zs_writer_range_sync(writer),
                zs_writer_sync(writer),
                zs_writer_truncate(writer, 0),
                zs_writer_close(writer),
                zs_open(fs, path, 2, &mut null_mut()),
                zs_reader_read(reader, 0, &raw mut byte, 1, &raw mut number),
                zs_reader_read(reader, 0, null_mut(), 1, &raw mut number),
                zs_reader_read(reader, 0, &raw mut byte, 1, null_mut()),
                zs_reader_read_later(reader, 0, 1, &mut null_mut()),
                zs_pending_wait(null_mut(), &raw mut byte, 1, &raw mut number),
                zs_stat(fs, path, 2, null_mut()),
                zs_same(fs, path, 2, path, 2, null_mut()),
                zs_list(fs, path, 2, None, null_mut()),
                zs_make_directory(fs, path, 2),
                zs_make_directories(fs, path, 2),
                zs_remove_directory(fs, path, 2),
                zs_remove(fs, path, 2),
                zs_rename(fs, path, 2, path, 2),
                zs_link(fs, path, 2, path, 2),
                zs_truncate(fs, path, 2, 0),
                zs_sync_metadata(fs),
                zs_lock(fs, path, 2),
            ];
            zs_reader_read_many(reader, null_mut(), 1);
            zs_writer_set_lifetime(writer, 1);
            zs_writer_set_expected_size(writer, 1);
            zs_writer_set_background(writer, 1);
            zs_reader_set_uncached(reader);
            zs_unlock(fs, path, 2);
            zs_fs_free(null_mut());
            zs_writer_free(writer);
            zs_reader_free(reader);
            zs_pending_free(null_mut());
            let numbers = [
                zs_fs_free_bytes(fs),
                zs_fs_identity(fs),
                zs_writer_size(writer),
                zs_writer_inode(writer),
                zs_reader_size(reader),
                zs_reader_inode(reader),
            ];
            (codes, numbers)
        };
        let invalid = null_code();
        assert!(codes.iter().all(|code| *code == invalid), "{codes:?}");
        assert_eq!((numbers, number), ([0; 6], 0));
        let mut reads = [Read {
            offset: 0,
            data: null_mut(),
            length: 1,
            got: 7,
            code: 0,
        }];
        // SAFETY: as above.
        unsafe { zs_reader_read_many(reader, reads.as_mut_ptr(), 1) };
        assert_eq!((reads[0].got, reads[0].code), (0, invalid));
    }

    fn null_code() -> c_int {
        crate::pointers::null().code
    }
}
