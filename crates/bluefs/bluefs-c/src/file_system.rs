//! The traits that a file system implements for the ABI. Hints, and calls that only RocksDB makes, have default
//! implementations.

use crate::failure::{Answer, Failure};
use bluefs::Lifetime;
use serde_json::Value;

/// Metadata of a file or directory.
pub(crate) struct Entry {
    pub size: u64,
    pub modified_micros: u64,
    pub inode: u64,
    pub links: u32,
    pub is_directory: bool,
}

fn unsupported<T>(what: &str) -> Answer<T> {
    Err(Failure::invalid(format!(
        "{what} is nothing that this file system does"
    )))
}

/// Operations on files by path.
pub(crate) trait FileSystem: Send + Sync {
    fn create(&self, path: &str) -> Answer<Box<dyn WritableFile>>;
    /// Opens a file for appending; creates it if it does not exist.
    fn reopen(&self, path: &str) -> Answer<Box<dyn WritableFile>>;
    fn open(&self, path: &str) -> Answer<Box<dyn ReadableFile>>;
    fn entry(&self, path: &str) -> Answer<Entry>;
    /// Names of the files and directories in a directory.
    fn list(&self, path: &str) -> Answer<Vec<String>>;
    fn create_directory(&self, path: &str) -> Answer;
    fn remove_directory(&self, path: &str) -> Answer;
    fn delete(&self, path: &str) -> Answer;
    fn rename(&self, from: &str, to: &str) -> Answer;
    fn sync_metadata(&self) -> Answer;
    fn lock(&self, path: &str) -> Answer;
    fn unlock(&self, path: &str);
    fn free_bytes(&self) -> u64;
    /// Identifies the mount within the process.
    fn identity(&self) -> u64;
    /// Writes out unsynced bytes of logs that are at least `age_micros` old.
    fn write_out(&self, age_micros: u64) -> Answer;
    /// Makes everything durable; later calls fail.
    fn unmount(&self) -> Answer;
    fn statistics(&self) -> Value;

    fn link(&self, _from: &str, _to: &str) -> Answer {
        unsupported("a link")
    }
    fn truncate(&self, _path: &str, _size: u64) -> Answer {
        unsupported("a truncate by name")
    }
    fn is_same(&self, _first: &str, _second: &str) -> Answer<bool> {
        unsupported("a comparison of names")
    }
}

/// Implements the calls for which the file system has methods of the same names. `$written` makes a [`WritableFile`] of
/// its writer.
macro_rules! by_its_own {
    ($written:path) => {
        fn create(&self, path: &str) -> Answer<Box<dyn WritableFile>> {
            Ok($written(self.create(path)?))
        }
        fn reopen(&self, path: &str) -> Answer<Box<dyn WritableFile>> {
            Ok($written(self.reopen(path)?))
        }
        fn open(&self, path: &str) -> Answer<Box<dyn ReadableFile>> {
            Ok(Box::new(self.open(path)?))
        }
        fn list(&self, path: &str) -> Answer<Vec<String>> {
            Ok(self.list(path)?)
        }
        fn create_directory(&self, path: &str) -> Answer {
            Ok(self.create_directory(path)?)
        }
        fn remove_directory(&self, path: &str) -> Answer {
            Ok(self.remove_directory(path)?)
        }
        fn delete(&self, path: &str) -> Answer {
            Ok(self.delete(path)?)
        }
        fn rename(&self, from: &str, to: &str) -> Answer {
            Ok(self.rename(from, to)?)
        }
        fn lock(&self, path: &str) -> Answer {
            Ok(self.lock(path)?)
        }
        fn unlock(&self, path: &str) {
            self.unlock(path);
        }
    };
}
pub(crate) use by_its_own;

/// A file that is open for appending; threads may share it.
pub(crate) trait WritableFile: Send + Sync {
    fn append(&self, data: &[u8]) -> Answer;
    /// Makes appended bytes visible to readers, and lets them survive the process as far as the file system can.
    fn flush(&self) -> Answer;
    fn sync(&self) -> Answer;
    fn truncate(&self, size: u64) -> Answer;
    fn close(&self) -> Answer;
    fn size(&self) -> u64;
    fn inode(&self) -> u64;
    fn set_lifetime(&self, lifetime: Lifetime);

    /// Starts writing out, without waiting for durability.
    fn range_sync(&self) -> Answer {
        self.flush()
    }
    fn set_expected_size(&self, _bytes: u64) {}
    fn set_background(&self, _background: bool) {}
}

/// A read that has been begun; calling the closure waits for its bytes.
pub(crate) type Pending = Box<dyn FnOnce() -> Answer<Vec<u8>> + Send>;

/// A file that is open for reading.
pub(crate) trait ReadableFile: Send + Sync {
    /// Fills `buffer` and returns the number of bytes; it is smaller than the buffer only at the file's end.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Answer<usize>;
    fn size(&self) -> u64;
    fn inode(&self) -> u64;

    fn read_many(&self, reads: &mut [(u64, &mut [u8])]) -> Vec<Answer<usize>> {
        let each = reads.iter_mut();
        each.map(|(offset, buffer)| self.read_at(*offset, buffer))
            .collect()
    }
    fn read_later(&self, offset: u64, length: usize) -> Pending {
        let mut bytes = vec![0; length];
        let got = self.read_at(offset, &mut bytes);
        Box::new(|| {
            bytes.truncate(got?);
            Ok(bytes)
        })
    }
    /// Stops putting what is read into a cache.
    fn set_uncached(&mut self) {}
}
