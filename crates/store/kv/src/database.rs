//! An open database.

use crate::bridge::ffi;
use crate::error::{Result, check};
use crate::replay::Filter;
use crate::{Batch, Durability, Error, Options, ReplayFilter, Scan};
use bluefs::BlueFs;
use cxx::UniquePtr;
use std::marker::PhantomData;
use std::time::Duration;

/// An open database. Every method may be called from many threads, and may block.
pub struct Kv {
    database: UniquePtr<ffi::Database>,
}

impl Kv {
    /// Opens the database in `directory` of `fs`; `filter` sees the log's batches in order.
    pub fn open(
        fs: &BlueFs,
        directory: &str,
        options: &Options,
        filter: Option<Box<dyn ReplayFilter>>,
    ) -> Result<Self> {
        let max_wal_bytes = match options.max_wal_bytes {
            0 => options.write_buffer_bytes * 4,
            bytes => bytes,
        };
        let config = ffi::Config {
            directory: directory.to_owned(),
            create_if_missing: options.create_if_missing,
            read_only: options.read_only,
            write_buffer_bytes: options.write_buffer_bytes,
            target_file_bytes: options.target_file_bytes,
            max_compaction_bytes: options.max_compaction_bytes,
            block_cache_bytes: options.block_cache_bytes,
            max_wal_bytes,
            max_manifest_bytes: options.max_manifest_bytes,
            max_background_jobs: options.max_background_jobs,
            merge_prefixes: options.merge.iter().map(|(prefix, _)| *prefix).collect(),
        };
        let mut outcome = ffi::Outcome {
            kind: ffi::Kind::Ok,
            message: String::new(),
        };
        let handle = bluefs_rocksdb::into_raw(fs.clone()).expose_provenance();
        let filter = Box::new(Filter::new(filter));
        let database = ffi::open_database(handle, &config, filter, &mut outcome);
        check(outcome)?;
        if database.is_null() {
            return Err(Error::Io {
                message: "RocksDB gave no database".to_owned(),
            });
        }
        Ok(Self { database })
    }

    /// Carries out a batch.
    pub fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        check(
            self.database
                .write(&batch.inner, durability == Durability::Synced),
        )
    }

    /// A key's value.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let (mut value, mut found) = (Vec::new(), false);
        check(self.database.get(key, &mut value, &mut found))?;
        Ok(found.then_some(value))
    }

    /// All keys from `lower` up to but without `upper`, in order, as they are now.
    pub fn scan(&self, lower: &[u8], upper: Option<&[u8]>) -> Scan<'_> {
        let cursor = self
            .database
            .scan(lower, upper.unwrap_or_default(), upper.is_some());
        Scan {
            cursor,
            done: false,
            database: PhantomData,
        }
    }

    /// Writes the memtable out, so that the log is not needed any more.
    pub fn flush(&self) -> Result<()> {
        check(self.database.flush())
    }

    /// Compacts everything.
    pub fn compact(&self) -> Result<()> {
        check(self.database.compact())
    }

    /// Writes the memtable out and waits until RocksDB sees nothing more to compact, so that the
    /// space of what was deleted is given back; true if that is reached within `patience`.
    pub fn settle(&self, patience: Duration) -> Result<bool> {
        let patience_ms = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        let mut settled = false;
        check(self.database.settle(patience_ms, &mut settled))?;
        Ok(settled)
    }

    /// One of RocksDB's properties.
    pub fn property(&self, name: &str) -> Option<String> {
        let mut found = false;
        let value = self.database.property(name, &mut found);
        found.then_some(value)
    }

    /// Closes it; errors that a drop would swallow are answered.
    pub fn close(mut self) -> Result<()> {
        check(self.database.pin_mut().close())
    }
}
