//! Engines, which make and open databases, and the check that an engine opens only its own databases.

use crate::healing::Healing;
use crate::{Database, Error, Options, ReplayFilter, Result};
use bluefs::BlueFs;
use std::ops::Deref;

/// Makes and opens databases of one implementation, such as RocksDB.
pub trait Engine: Send + Sync {
    /// Its name, one of those in `MAKERS`.
    fn name(&self) -> &'static str;

    /// Opens the database in `directory`, or makes it if the options say so; `filter` sees the log's batches in order.
    fn open(
        &self,
        fs: &BlueFs,
        directory: &str,
        options: &Options,
        filter: Option<Box<dyn ReplayFilter>>,
    ) -> Result<Box<dyn Database>>;
}

/// First bytes of the file `CURRENT` of a database, and the engine that writes them.
const MAKERS: [(&[u8], &str); 2] = [(b"MANIFEST-", "RocksDB"), (b"kv-log ", "kv-log")];

/// An open database of any engine.
pub struct Kv(Box<dyn Database>);

impl Kv {
    /// Opens the database in `directory` of `fs` by `engine`, unless another engine made it; `filter`
    /// sees the log's batches in order.
    pub fn open(
        engine: &dyn Engine,
        fs: &BlueFs,
        directory: &str,
        options: &Options,
        filter: Option<Box<dyn ReplayFilter>>,
    ) -> Result<Self> {
        let given = engine.name();
        match maker(fs, directory) {
            Some(found) if found != given => Err(Error::OtherEngine { found, given }),
            _ => {
                let database = engine.open(fs, directory, options, filter)?;
                Ok(Self(match fs.info().copies() {
                    1 => database,
                    _ => Healing::over(database, fs),
                }))
            }
        }
    }

    /// Closes the database, and returns errors that a drop would ignore.
    pub fn close(self) -> Result<()> {
        self.0.close()
    }
}

impl Deref for Kv {
    type Target = dyn Database;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

/// The engine that made the database in `directory`; `None` if that is unknown, so that the engine's own error is
/// reported.
fn maker(fs: &BlueFs, directory: &str) -> Option<&'static str> {
    let current = fs.open(&format!("{directory}/CURRENT")).ok()?;
    let mut begin = [0; 16];
    let length = current.read_at(0, &mut begin).ok()?;
    let made = |(prefix, _): &&(&[u8], _)| begin[..length].starts_with(prefix);
    MAKERS.iter().find(made).map(|(_, name)| *name)
}
