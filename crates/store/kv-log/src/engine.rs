//! Makes and opens databases.

use crate::database::LogDatabase;
use crate::files::{Files, Refused};
use crate::lock::Lock;
use crate::rows::Rows;
use bluefs::BlueFs;
use kv::{Database, Engine, Error, Options, ReplayFilter, Result};

/// The engine for simulations and tests.
#[derive(Clone, Copy, Debug)]
pub struct KvLog;

impl Engine for KvLog {
    fn name(&self) -> &'static str {
        "kv-log"
    }

    fn open(
        &self,
        fs: &BlueFs,
        directory: &str,
        options: &Options,
        filter: Option<Box<dyn ReplayFilter>>,
    ) -> Result<Box<dyn Database>> {
        let lock = if options.read_only {
            None
        } else {
            Some(Lock::take(fs, directory)?)
        };
        let files = Files {
            fs: fs.clone(),
            directory: directory.to_owned(),
        };
        let refused = |refused| match refused {
            Refused::Unchanged(error) | Refused::Unknown(error) => error,
        };
        let (rows, log) = match files.current()? {
            None if options.create_if_missing && !options.read_only => {
                let rows = Rows::default();
                let log = files.begin(1, &rows).map_err(refused)?;
                (rows, Some(log))
            }
            None => {
                return Err(Error::NotFound {
                    message: format!("{directory}: no database"),
                });
            }
            Some(current) => {
                let mut rows = files.load(current)?;
                let has_log = files.replay(current, &mut rows, &options.merge, filter)?;
                let log = if options.read_only {
                    None
                } else {
                    files.remove_all_but(current)?;
                    Some(if has_log {
                        // Drops batches that do not count together with the old log.
                        let next = files.begin(current.generation + 1, &rows);
                        let next = next.map_err(refused)?;
                        files.remove_generation(current.generation);
                        next
                    } else {
                        (current, files.reopen(current)?)
                    })
                };
                (rows, log)
            }
        };
        Ok(Box::new(LogDatabase::new(files, options, rows, log, lock)))
    }
}
