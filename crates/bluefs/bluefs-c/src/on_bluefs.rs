//! Implements the traits of the ABI for BlueFS.

use crate::failure::Answer;
use crate::file_system::{Entry, FileSystem, Pending, ReadableFile, WritableFile, by_its_own};
use bluefs::{BlueFs, Lifetime, Reader, SharedWriter};
use serde_json::Value;
use std::sync::Arc;

fn written(writer: bluefs::Writer) -> Box<dyn WritableFile> {
    Box::new(SharedWriter::new(writer))
}

impl FileSystem for BlueFs {
    by_its_own!(written);

    fn entry(&self, path: &str) -> Answer<Entry> {
        let found = self.metadata(path)?;
        Ok(Entry {
            size: found.size,
            modified_micros: found.modified_micros,
            inode: found.inode,
            links: found.links,
            is_directory: found.is_directory,
        })
    }
    fn sync_metadata(&self) -> Answer {
        Ok(self.sync_metadata()?)
    }
    fn free_bytes(&self) -> u64 {
        self.usage().free_bytes
    }
    fn identity(&self) -> u64 {
        Arc::as_ptr(self.device()).cast::<u8>().addr() as u64
    }
    fn write_out(&self, age_micros: u64) -> Answer {
        Ok(self.write_out_logs(age_micros)?)
    }
    fn unmount(&self) -> Answer {
        Ok(self.unmount()?)
    }
    fn statistics(&self) -> Value {
        let statistics = self.statistics();
        let mut value = serde_json::to_value(statistics).unwrap_or_default();
        value["bytes_asked"] = statistics.bytes_asked().into();
        value["bytes_written"] = statistics.bytes_written().into();
        value["cache"]["hit_ratio"] = statistics.cache.hit_ratio().into();
        value
    }
    fn link(&self, from: &str, to: &str) -> Answer {
        Ok(self.link(from, to)?)
    }
    fn truncate(&self, path: &str, size: u64) -> Answer {
        Ok(self.truncate(path, size)?)
    }
    fn is_same(&self, first: &str, second: &str) -> Answer<bool> {
        Ok(self.is_same(first, second)?)
    }
}

impl WritableFile for SharedWriter {
    fn append(&self, data: &[u8]) -> Answer {
        Ok(self.lock().append(data)?)
    }
    fn flush(&self) -> Answer {
        Ok(self.lock().flush()?)
    }
    fn range_sync(&self) -> Answer {
        Ok(self.lock().range_sync()?)
    }
    fn sync(&self) -> Answer {
        Ok(self.sync()?)
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
        self.lock().set_lifetime(lifetime);
    }
    fn set_expected_size(&self, bytes: u64) {
        self.lock().set_expected_size(bytes);
    }
    fn set_background(&self, background: bool) {
        self.lock().set_background(background);
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
    fn read_many(&self, reads: &mut [(u64, &mut [u8])]) -> Vec<Answer<usize>> {
        let results = self.read_many(reads).into_iter();
        results.map(|result| Ok(result?)).collect()
    }
    fn read_later(&self, offset: u64, length: usize) -> Pending {
        let pending = self.read_later(offset, length);
        Box::new(|| Ok(pending.wait()?))
    }
    fn set_uncached(&mut self) {
        *self = self.clone().uncached();
    }
}
