//! An open RocksDB database.

use crate::bridge::ffi;
use crate::cursor::RocksCursor;
use crate::healer::Healer;
use crate::outcome::check;
use cache::CacheStatistics;
use cxx::UniquePtr;
use kv::{Batch, Change, Database, Durability, Heal, Result, Scan};
use std::time::Duration;

pub(crate) struct RocksDatabase(pub UniquePtr<ffi::Database>);

impl RocksDatabase {
    /// Value of a property that counts bytes; 0 if there is none.
    fn bytes(&self, name: &str) -> u64 {
        let bytes = self.property(name);
        bytes.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
    }
}

impl Database for RocksDatabase {
    fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        let mut inner = ffi::new_batch();
        let mut target = inner.pin_mut();
        for change in batch.changes() {
            match change {
                Change::Put(key, value) => target.as_mut().put(key, value),
                Change::Delete(key) => target.as_mut().remove(key),
                Change::Merge(key, value) => target.as_mut().merge(key, value),
                Change::LogData(blob) => target.as_mut().log_data(blob),
            }
        }
        check(self.0.write(&inner, durability == Durability::Synced))
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let (mut value, mut found) = (Vec::new(), false);
        check(self.0.get(key, &mut value, &mut found))?;
        Ok(found.then_some(value))
    }

    fn scan(&self, lower: &[u8], upper: Option<&[u8]>) -> Scan<'_> {
        let cursor = self
            .0
            .scan(lower, upper.unwrap_or_default(), upper.is_some());
        Box::new(RocksCursor::new(cursor))
    }

    fn cache(&self) -> CacheStatistics {
        let counts = self.0.cache();
        CacheStatistics {
            budget_bytes: counts.budget_bytes,
            held_bytes: counts.held_bytes,
            hits: counts.hits,
            hit_bytes: counts.hit_bytes,
            misses: counts.misses,
            inserted_bytes: counts.inserted_bytes,
        }
    }

    fn flush(&self) -> Result<()> {
        check(self.0.flush())
    }

    fn compact(&self) -> Result<()> {
        check(self.0.compact())
    }

    fn settle(&self, patience: Duration) -> Result<bool> {
        let patience_ms = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
        let mut settled = false;
        check(self.0.settle(patience_ms, &mut settled))?;
        Ok(settled)
    }

    fn on_damage(&self, heal: Heal) {
        self.0.on_damage(Box::new(Healer(heal)));
    }

    fn has_levels(&self) -> bool {
        true
    }

    fn stored_bytes(&self) -> u64 {
        self.bytes("rocksdb.live-sst-files-size")
    }

    fn kept_bytes(&self) -> u64 {
        let all = self.bytes("rocksdb.total-sst-files-size");
        all.saturating_sub(self.stored_bytes())
    }

    fn is_compacting(&self) -> bool {
        let work = [
            "rocksdb.num-running-compactions",
            "rocksdb.compaction-pending",
            "rocksdb.num-running-flushes",
            "rocksdb.mem-table-flush-pending",
        ];
        let is_some = |name: &&str| self.property(name).is_some_and(|count| count != "0");
        work.iter().any(is_some)
    }

    fn property(&self, name: &str) -> Option<String> {
        let mut found = false;
        let value = self.0.property(name, &mut found);
        found.then_some(value)
    }

    fn close(mut self: Box<Self>) -> Result<()> {
        check(self.0.pin_mut().close())
    }
}
