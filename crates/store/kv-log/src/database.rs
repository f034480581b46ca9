//! An open database.
//!
//! A batch is appended to the log, made durable if requested, and then shown to readers. Readers see batches in the
//! order of the log; a synced one only once it is durable, another one only once they see all before it. Writers that
//! wait at the same time share a flush. Readers take no lock that is held during I/O.
//!
//! Locks, in the order in which they are taken: `log` → its writer → `waiting` → `rows`.

use crate::answer::answer;
use crate::files::{Files, Refused};
use crate::format::{Current, record};
use crate::lock::Lock;
use crate::rows::{Rows, check};
use bluefs::SharedWriter;
use kv::{Batch, Database, Durability, Error, MergeOperator, Options, Result, Scan};
use runtime::sync::{Mutex, RwLock};
use std::collections::VecDeque;
use std::sync::OnceLock;
use std::time::Duration;

pub(crate) struct LogDatabase {
    files: Files,
    merges: Vec<(u8, MergeOperator)>,
    /// Least bytes of a log after which a snapshot is made, however small that is.
    write_buffer_bytes: u64,
    rows: RwLock<Rows>,
    /// Shared by writers, held exclusively to begin a new generation; `None`: read-only.
    log: RwLock<Option<Log>>,
    waiting: Mutex<Waiting>,
    /// The first failure of the log, after which nothing can be written.
    failure: OnceLock<Error>,
    _lock: Option<Lock>,
}

struct Log {
    current: Current,
    writer: SharedWriter,
    /// Bytes of log after which the next generation begins.
    most_bytes: Mutex<u64>,
}

/// Batches in the log that readers do not see yet.
#[derive(Default)]
struct Waiting {
    /// Number of batches appended, and how many of them readers see.
    appended: u64,
    seen: u64,
    batches: VecDeque<Batch>,
}

impl LogDatabase {
    pub fn new(
        files: Files,
        options: &Options,
        rows: Rows,
        log: Option<(Current, SharedWriter)>,
        lock: Option<Lock>,
    ) -> Self {
        let write_buffer_bytes = options.write_buffer_bytes;
        Self {
            files,
            merges: options.merge.clone(),
            write_buffer_bytes,
            rows: RwLock::new(rows),
            log: RwLock::new(
                log.map(|(current, writer)| Log::new(current, writer, write_buffer_bytes)),
            ),
            waiting: Mutex::default(),
            failure: OnceLock::new(),
            _lock: lock,
        }
    }

    fn check_log(&self) -> Result<()> {
        self.failure
            .get()
            .map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Stops all writes, because the contents of the log are unknown from here on; returns the first failure.
    fn fail(&self, error: Error) -> Error {
        self.failure.get_or_init(|| error).clone()
    }

    /// Appends a batch; returns its number, and whether readers see all batches before it.
    fn append(&self, log: &Log, batch: &Batch) -> Result<(u64, bool)> {
        let mut writer = log.writer.lock();
        self.check_log()?;
        let appended = writer.append(&record(batch.as_bytes()));
        appended.map_err(|error| self.fail(answer(error)))?;
        let mut waiting = self.waiting.lock();
        let is_next = waiting.batches.is_empty();
        waiting.batches.push_back(batch.clone());
        waiting.appended += 1;
        Ok((waiting.appended, is_next))
    }

    /// Shows the batches up to `number` to readers.
    fn show(&self, number: u64) {
        let mut waiting = self.waiting.lock();
        while waiting.seen < number {
            let Some(batch) = waiting.batches.pop_front() else {
                return;
            };
            waiting.seen += 1;
            self.rows.write().apply(&batch);
        }
    }

    /// Begins the generation after `of`, unless that has been done already or the log is empty.
    fn begin_next(&self, of: Option<u64>) -> Result<()> {
        let mut log = self.log.write();
        let log = log.as_mut().ok_or_else(read_only)?;
        let before = log.current.generation;
        if of.is_some_and(|of| of != before) || log.writer.lock().size() == 0 {
            return Ok(());
        }
        self.check_log()?;
        // No writer is active, so readers see everything in the log.
        let rows = self.rows.read().clone();
        match self.files.begin(before + 1, &rows) {
            Ok((current, writer)) => *log = Log::new(current, writer, self.write_buffer_bytes),
            Err(Refused::Unchanged(error)) => return Err(error),
            Err(Refused::Unknown(error)) => return Err(self.fail(error)),
        }
        self.files.remove_generation(before);
        Ok(())
    }
}

impl Log {
    fn new(current: Current, writer: SharedWriter, write_buffer_bytes: u64) -> Self {
        Self {
            current,
            writer,
            // A large snapshot is not rewritten for a small log.
            most_bytes: Mutex::new(write_buffer_bytes.max(2 * current.snapshot_bytes)),
        }
    }

    /// Whether the log has grown so much that a new generation is worthwhile; not soon again, in case that fails.
    fn has_grown(&self, write_buffer_bytes: u64) -> bool {
        let size = self.writer.lock().size();
        let mut most_bytes = self.most_bytes.lock();
        let grown = size > *most_bytes;
        if grown {
            *most_bytes = size + write_buffer_bytes;
        }
        grown
    }
}

fn read_only() -> Error {
    Error::Invalid {
        message: "the database was opened read-only".to_owned(),
    }
}

impl Database for LogDatabase {
    fn write(&self, batch: &Batch, durability: Durability) -> Result<()> {
        check(batch, &self.merges)?;
        let grown = {
            let log = self.log.read();
            let log = log.as_ref().ok_or_else(read_only)?;
            let (number, is_next) = self.append(log, batch)?;
            if durability == Durability::Synced || !is_next {
                let synced = log.writer.sync();
                synced.map_err(|error| self.fail(answer(error)))?;
            }
            self.show(number);
            let grown = log.has_grown(self.write_buffer_bytes);
            grown.then_some(log.current.generation)
        };
        if grown.is_some()
            && let Err(error) = self.begin_next(grown)
        {
            tracing::warn!(%error, "the log goes on growing");
        }
        Ok(())
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.rows.read().get(key))
    }

    fn scan(&self, lower: &[u8], upper: Option<&[u8]>) -> Scan<'_> {
        let rows = self.rows.read().clone();
        Box::new(rows.scan(lower, upper))
    }

    fn flush(&self) -> Result<()> {
        self.begin_next(None)
    }

    fn compact(&self) -> Result<()> {
        self.begin_next(None)
    }

    fn settle(&self, _patience: Duration) -> Result<bool> {
        self.begin_next(None).map(|()| true)
    }

    fn flush_bytes(&self) -> u64 {
        self.rows.read().bytes() as u64
    }

    fn stored_bytes(&self) -> u64 {
        self.flush_bytes()
    }

    fn property(&self, _name: &str) -> Option<String> {
        None
    }

    fn close(self: Box<Self>) -> Result<()> {
        match &*self.log.read() {
            Some(log) if self.failure.get().is_none() => log.writer.lock().close().map_err(answer),
            _ => Ok(()),
        }
    }
}
