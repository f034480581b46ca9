//! Opens RocksDB. Settings that are not in `kv::Options` are fixed in `cpp/database.cc`.

use crate::bridge::ffi;
use crate::database::RocksDatabase;
use crate::outcome::check;
use crate::replay::Filter;
use bluefs::BlueFs;
use kv::{Database, Engine, Error, Options, ReplayFilter, Result};

/// The engine for stores in production.
#[derive(Clone, Copy, Debug)]
pub struct RocksDb;

impl Engine for RocksDb {
    fn name(&self) -> &'static str {
        "RocksDB"
    }

    fn open(
        &self,
        fs: &BlueFs,
        directory: &str,
        options: &Options,
        filter: Option<Box<dyn ReplayFilter>>,
    ) -> Result<Box<dyn Database>> {
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
            ascending: shapes(options.ascending.chunks(1)),
            scanned: shapes(options.scanned.iter().map(Vec::as_slice)),
            listed: options.listed.clone(),
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
        Ok(Box::new(RocksDatabase(database)))
    }
}

/// Encodes shapes of prefixes, each preceded by a byte with its length.
fn shapes<'a>(all: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    all.flat_map(|shape| {
        // A truncated shape only makes larger groups.
        let length = u8::try_from(shape.len()).unwrap_or(u8::MAX);
        std::iter::once(length).chain(shape.iter().copied().take(length.into()))
    })
    .collect()
}
