//! The small database, with calls that a test replaces. Unit tests of `store` include this file, too.

use bluefs::BlueFs;
use kv::{Batch, Cursor, Database, Durability, Engine, Heal, Options, ReplayFilter, Result, Scan};
use kv_log::KvLog;
use runtime::sync::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// What is done in place of a call; by default the call itself.
pub(crate) trait Calls: Send + Sync + 'static {
    fn write(&self, database: &dyn Database, batch: &Batch, durability: Durability) -> Result<()> {
        database.write(batch, durability)
    }

    fn get(&self, database: &dyn Database, key: &[u8]) -> Result<Option<Vec<u8>>> {
        database.get(key)
    }

    fn scan<'a>(
        &'a self,
        database: &'a dyn Database,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> Scan<'a> {
        database.scan(lower, upper)
    }

    fn flush(&self, database: &dyn Database) -> Result<()> {
        database.flush()
    }

    fn settle(&self, database: &dyn Database, patience: Duration) -> Result<bool> {
        database.settle(patience)
    }

    fn close(&self, database: Box<dyn Database>) -> Result<()> {
        database.close()
    }
}

/// What a database says of rows that the drive does not read.
fn unread() -> kv::Error {
    kv::Error::Io {
        message: "a sector cannot be read".to_owned(),
    }
}

struct Fails(Option<kv::Error>);

impl Iterator for Fails {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Err)
    }
}

impl Cursor for Fails {
    fn seek(&mut self, _: &[u8]) {}
}

/// A walk over rows that the drive does not read.
fn failing_scan() -> Scan<'static> {
    Box::new(Fails(Some(unread())))
}

/// Rows that the drive does not read: those with keys that begin with one of these, and scans that begin there.
#[derive(Default)]
pub(crate) struct Unread(pub Mutex<Vec<Vec<u8>>>);

impl Unread {
    fn has(&self, key: &[u8]) -> bool {
        let rows = self.0.lock();
        rows.iter().any(|row| key.starts_with(row))
    }
}

impl Calls for Unread {
    fn get(&self, database: &dyn Database, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.has(key) {
            true => Err(unread()),
            false => database.get(key),
        }
    }

    fn scan<'a>(
        &'a self,
        database: &'a dyn Database,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> Scan<'a> {
        match self.has(lower) {
            true => failing_scan(),
            false => database.scan(lower, upper),
        }
    }
}

/// An engine whose databases have such calls.
pub(crate) struct Changed<C>(pub Arc<C>);
struct ChangedDatabase<C>(Box<dyn Database>, Arc<C>);

impl<C: Calls> Engine for Changed<C> {
    fn name(&self) -> &'static str {
        KvLog.name()
    }

    fn open(
        &self,
        fs: &BlueFs,
        directory: &str,
        options: &Options,
        filter: Option<Box<dyn ReplayFilter>>,
    ) -> Result<Box<dyn Database>> {
        let database = KvLog.open(fs, directory, options, filter)?;
        Ok(Box::new(ChangedDatabase(database, self.0.clone())))
    }
}

impl<C: Calls> Database for ChangedDatabase<C> {
    fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        self.1.write(&*self.0, batch, durability)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.1.get(&*self.0, key)
    }

    fn scan(&self, lower: &[u8], upper: Option<&[u8]>) -> Scan<'_> {
        self.1.scan(&*self.0, lower, upper)
    }

    fn flush(&self) -> Result<()> {
        self.1.flush(&*self.0)
    }

    fn compact(&self) -> Result<()> {
        self.0.compact()
    }

    fn settle(&self, patience: Duration) -> Result<bool> {
        self.1.settle(&*self.0, patience)
    }

    fn flush_bytes(&self) -> u64 {
        self.0.flush_bytes()
    }

    fn stored_bytes(&self) -> u64 {
        self.0.stored_bytes()
    }

    fn has_levels(&self) -> bool {
        self.0.has_levels()
    }

    fn kept_bytes(&self) -> u64 {
        self.0.kept_bytes()
    }

    fn is_compacting(&self) -> bool {
        self.0.is_compacting()
    }

    fn on_damage(&self, heal: Heal) {
        self.0.on_damage(heal);
    }

    fn heal_again(&self) {
        self.0.heal_again();
    }

    fn property(&self, name: &str) -> Option<String> {
        self.0.property(name)
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.1.close(self.0)
    }
}
