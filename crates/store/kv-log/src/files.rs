//! The files of a database: snapshot, log and `CURRENT` of each generation, and the change to the next generation.
//!
//! Order: snapshot written and new log created → the file that becomes `CURRENT` synced, whose flush covers both →
//! `CURRENT` replaced by a rename → the rename made durable → the old files removed. A power cut in between leaves the
//! old generation or the new one, and at most files that `CURRENT` does not name, which the next opening for writing
//! removes.

use crate::answer::{answer, corrupt};
use crate::format::{Current, HEADER_BYTES, Stop, record, records};
use crate::rows::{Merges, Rows, check};
use bluefs::{BlueFs, SharedWriter};
use kv::{Batch, Change, Error, LoggedBatch, Replay, ReplayFilter, Result};

/// Approximate bytes of a snapshot in one record.
const SNAPSHOT_RECORD: usize = 64 << 10;

pub(crate) struct Files {
    pub fs: BlueFs,
    pub directory: String,
}

/// Why a new generation was not begun.
pub(crate) enum Refused {
    /// The old generation is valid, as before the attempt.
    Unchanged(Error),
    /// Which generation is valid is known only when the database is opened again.
    Unknown(Error),
}

impl Files {
    fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.directory)
    }

    fn snapshot(&self, generation: u64) -> String {
        self.path(&format!("{generation:06}.sst"))
    }

    fn log(&self, generation: u64) -> String {
        self.path(&format!("{generation:06}.log"))
    }

    fn read(&self, path: &str) -> bluefs::Result<Vec<u8>> {
        let reader = self.fs.open(path)?;
        let mut bytes = vec![0; reader.size() as usize];
        let length = reader.read_at(0, &mut bytes)?;
        bytes.truncate(length);
        Ok(bytes)
    }

    /// The valid generation; `None` if there is no database.
    pub fn current(&self) -> Result<Option<Current>> {
        let path = self.path("CURRENT");
        match self.read(&path) {
            Err(bluefs::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(answer(error)),
            Ok(bytes) => Current::decode(&bytes)
                .map(Some)
                .ok_or_else(|| corrupt(&path, "names no generation of this version")),
        }
    }

    /// Reads a file that `CURRENT` names; it is corruption if that is missing.
    fn read_named(&self, path: &str) -> Result<Vec<u8>> {
        self.read(path).map_err(|error| match error {
            bluefs::Error::NotFound { .. } => corrupt(path, "is missing"),
            error => answer(error),
        })
    }

    /// The rows in the snapshot of a generation.
    pub fn load(&self, current: Current) -> Result<Rows> {
        let mut rows = Rows::default();
        if current.snapshot_bytes == 0 {
            return Ok(rows);
        }
        let path = self.snapshot(current.generation);
        let bytes = self.read_named(&path)?;
        if bytes.len() as u64 != current.snapshot_bytes {
            return Err(corrupt(&path, "is not as long as it was"));
        }
        for batch in records(&bytes) {
            let batch = batch.ok().and_then(Batch::from_bytes);
            rows.apply(&batch.ok_or_else(|| corrupt(&path, "is no snapshot"))?);
        }
        Ok(rows)
    }

    /// Applies the batches of the log until `filter` stops, or up to a torn record, which was never acknowledged.
    /// Returns whether the log has any bytes.
    pub fn replay(
        &self,
        current: Current,
        rows: &mut Rows,
        merges: &Merges,
        mut filter: Option<Box<dyn ReplayFilter>>,
    ) -> Result<bool> {
        let path = self.log(current.generation);
        let bytes = self.read_named(&path)?;
        let mut end = 0;
        for batch in records(&bytes) {
            let bad = || corrupt(&path, "has a record that is no batch");
            if let Ok(batch) = batch {
                end += (HEADER_BYTES + batch.len()) as u64;
            }
            let batch = match batch {
                Ok(batch) => Batch::from_bytes(batch).ok_or_else(bad)?,
                Err(Stop::Torn) => break,
                Err(Stop::Damaged) => return Err(bad()),
            };
            check(&batch, merges).map_err(|_| bad())?;
            let (mut keys, mut blobs) = (Vec::new(), Vec::new());
            for change in batch.changes() {
                match change {
                    Change::Put(key, _) | Change::Delete(key) => keys.push(key),
                    Change::LogData(blob) => blobs.push(blob),
                    Change::Merge(..) => {}
                }
            }
            let logged = LoggedBatch {
                log: &path,
                end,
                keys: &keys,
                log_data: &blobs,
            };
            let says = |filter: &mut Box<dyn ReplayFilter>| filter.batch(&logged);
            if filter.as_mut().map(says) == Some(Replay::Stop) {
                break;
            }
            rows.apply(&batch);
        }
        Ok(!bytes.is_empty())
    }

    /// Opens the empty log of a generation for appending.
    pub fn reopen(&self, current: Current) -> Result<SharedWriter> {
        let writer = self.fs.reopen(&self.log(current.generation));
        writer.map(SharedWriter::new).map_err(answer)
    }

    /// Begins a generation with a snapshot of `rows` and an empty log.
    pub fn begin(
        &self,
        generation: u64,
        rows: &Rows,
    ) -> std::result::Result<(Current, SharedWriter), Refused> {
        let next = self.path("CURRENT.next");
        let prepared = self.prepare(generation, rows, &next);
        let prepared = prepared.and_then(|prepared| {
            self.fs.rename(&next, &self.path("CURRENT"))?;
            Ok(prepared)
        });
        match prepared {
            Ok(prepared) => {
                let durable = self.fs.sync_metadata();
                durable.map_err(|error| Refused::Unknown(answer(error)))?;
                Ok(prepared)
            }
            Err(error) => {
                for path in [next, self.snapshot(generation), self.log(generation)] {
                    self.remove(&path);
                }
                Err(Refused::Unchanged(answer(error)))
            }
        }
    }

    fn prepare(
        &self,
        generation: u64,
        rows: &Rows,
        next: &str,
    ) -> bluefs::Result<(Current, SharedWriter)> {
        let mut snapshot_bytes = 0;
        if rows.all().next().is_some() {
            let mut file = self.fs.create(&self.snapshot(generation))?;
            let mut batch = Batch::default();
            for (key, value) in rows.all() {
                batch.put(key, value);
                if batch.byte_len() >= SNAPSHOT_RECORD {
                    file.append(&record(batch.as_bytes()))?;
                    batch.clear();
                }
            }
            if !batch.is_empty() {
                file.append(&record(batch.as_bytes()))?;
            }
            snapshot_bytes = file.size();
            file.close()?;
        }
        let log = SharedWriter::new(self.fs.create(&self.log(generation))?);
        let current = Current {
            generation,
            snapshot_bytes,
        };
        let mut file = self.fs.create(next)?;
        file.append(current.encode().as_bytes())?;
        file.sync()?;
        file.close()?;
        Ok((current, log))
    }

    /// Removes the files of a generation that is no longer valid.
    pub fn remove_generation(&self, generation: u64) {
        self.remove(&self.snapshot(generation));
        self.remove(&self.log(generation));
    }

    /// Removes files that power cuts have left of invalid generations.
    pub fn remove_all_but(&self, current: Current) -> Result<()> {
        let kept = ["CURRENT", "LOCK"].map(|name| self.path(name));
        let of_current = [
            self.snapshot(current.generation),
            self.log(current.generation),
        ];
        for name in self.fs.list(&self.directory).map_err(answer)? {
            let path = self.path(&name);
            if !kept.contains(&path) && !of_current.contains(&path) {
                self.remove(&path);
            }
        }
        Ok(())
    }

    fn remove(&self, path: &str) {
        match self.fs.delete(path) {
            Ok(()) | Err(bluefs::Error::NotFound { .. }) => {}
            // The next opening tries again.
            Err(error) => tracing::warn!(%error, "a file that is not needed any more stays"),
        }
    }
}
