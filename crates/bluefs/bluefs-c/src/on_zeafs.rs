//! Implements the traits of the ABI for ZEAFS.

use crate::failure::Answer;
use crate::file_system::{Entry, FileSystem, ReadableFile, WritableFile, by_its_own};
use bluefs::Lifetime;
use runtime::sync::Mutex;
use serde_json::{Value, json};
use std::ptr;
use zeafs::{Directories, Reader, Writer};

fn written(writer: Writer) -> Box<dyn WritableFile> {
    Box::new(Mutex::new(writer))
}

impl FileSystem for Directories {
    by_its_own!(written);

    fn entry(&self, path: &str) -> Answer<Entry> {
        let (size, inode, is_directory) = match self.entry(path)? {
            zeafs::Entry::File(found) => (found.size, found.inode, false),
            zeafs::Entry::Directory => (0, 0, true),
        };
        Ok(Entry {
            size,
            modified_micros: 0,
            inode,
            links: 1,
            is_directory,
        })
    }
    fn sync_metadata(&self) -> Answer {
        Ok(self.fs().sync_metadata()?)
    }
    fn free_bytes(&self) -> u64 {
        self.fs().usage().free_bytes
    }
    fn identity(&self) -> u64 {
        ptr::from_ref(self).addr() as u64
    }
    /// Writes out everything, because the age of a buffer is not known.
    fn write_out(&self, _age_micros: u64) -> Answer {
        Ok(self.fs().sync()?)
    }
    fn unmount(&self) -> Answer {
        Ok(self.fs().unmount()?)
    }
    fn statistics(&self) -> Value {
        let usage = self.fs().usage();
        json!({
            "files": usage.files, "live_bytes": usage.live_bytes, "free_bytes": usage.free_bytes,
            "free_zones": usage.free_zones, "moved_bytes": usage.moved_bytes,
        })
    }
}

impl WritableFile for Mutex<Writer> {
    fn append(&self, data: &[u8]) -> Answer {
        Ok(self.lock().append(data)?)
    }
    /// Does nothing: readers see buffered bytes anyway.
    fn flush(&self) -> Answer {
        Ok(())
    }
    fn sync(&self) -> Answer {
        Ok(self.lock().sync()?)
    }
    fn truncate(&self, size: u64) -> Answer {
        Ok(self.lock().truncate(size)?)
    }
    fn close(&self) -> Answer {
        Ok(self.lock().close()?)
    }
    fn size(&self) -> u64 {
        self.lock().size()
    }
    fn inode(&self) -> u64 {
        self.lock().inode()
    }
    fn set_lifetime(&self, lifetime: Lifetime) {
        self.lock().set_lifetime(match lifetime {
            Lifetime::Unknown | Lifetime::Short => zeafs::Lifetime::Short,
            Lifetime::Medium | Lifetime::Long | Lifetime::Extreme => zeafs::Lifetime::Long,
        });
    }
}

impl ReadableFile for Reader {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Answer<usize> {
        Ok(self.read_at(offset, buffer)?)
    }
    fn size(&self) -> u64 {
        self.size()
    }
    fn inode(&self) -> u64 {
        self.inode()
    }
}
