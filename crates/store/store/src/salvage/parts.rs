//! Reads one object part by part, records its lost bytes, and writes the others to a store.

use super::Salvage;
use crate::blob_reader::{ReadError, read_blob};
use crate::{ObjectWriter, Result, Store, Written};
use object::{Blob, ChecksumKind, Codec};
use std::ops::Range;

/// A run of an object's bytes.
pub(super) struct Part {
    pub length: u64,
    pub content: Stored,
}

pub(super) enum Stored {
    Bytes {
        blob: Blob,
        from: u32,
    },
    Hole,
    /// No row describes these bytes.
    Unknown,
}

/// An object while it is read.
pub(super) struct Object<'a> {
    salvage: &'a Salvage,
    store: Option<&'a Store>,
    offset: u64,
    /// Writer for the current run of readable bytes, and the run's offset in the object.
    run: Option<(u64, ObjectWriter)>,
    pub written: Vec<(u64, Written)>,
    pub lost: Vec<Range<u64>>,
    /// Reason for the first loss.
    pub why: String,
    pub unverified: u64,
}

impl<'a> Object<'a> {
    pub fn new(salvage: &'a Salvage, store: Option<&'a Store>) -> Self {
        Self {
            salvage,
            store,
            offset: 0,
            run: None,
            written: Vec::new(),
            lost: Vec::new(),
            why: String::new(),
            unverified: 0,
        }
    }

    pub fn take(&mut self, part: Part) -> Result<()> {
        let end = self.offset.saturating_add(part.length);
        match part.content {
            Stored::Hole => {
                self.end_run()?;
                self.offset = end;
            }
            Stored::Unknown => {
                self.lose(part.length, || "no summary says where they are".to_owned())?;
            }
            Stored::Bytes { blob, from } => self.read(&blob, from, part.length as u32)?,
        }
        Ok(())
    }

    /// Reads a part as a whole; if that fails, unit by unit of its checksums.
    fn read(&mut self, blob: &Blob, from: u32, length: u32) -> Result<()> {
        if blob.checksum_kind == ChecksumKind::None {
            self.unverified += u64::from(length);
        }
        let error = match self.try_read(blob, from, length) {
            Ok(bytes) => return self.write(&bytes),
            Err(error) => error,
        };
        error.check_answers(&*self.salvage.device)?;
        let unit = blob.checksum_block.bytes();
        if blob.codec != Codec::None || length <= unit {
            return self.lose(length.into(), || error.to_string());
        }
        let (mut at, end) = (from, from.saturating_add(length));
        while at < end {
            let next = (at / unit * unit).saturating_add(unit).min(end);
            match self.try_read(blob, at, next - at) {
                Ok(bytes) => self.write(&bytes)?,
                Err(error) => {
                    error.check_answers(&*self.salvage.device)?;
                    self.lose((next - at).into(), || error.to_string())?;
                }
            }
            at = next;
        }
        Ok(())
    }

    fn try_read(&self, blob: &Blob, from: u32, length: u32) -> Result<Vec<u8>, ReadError> {
        let mut bytes = vec![0; length as usize];
        read_blob(&*self.salvage.device, blob, from, &mut bytes)?;
        Ok(bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some(store) = self.store {
            let (start, mut writer) = match self.run.take() {
                Some(run) => run,
                None => (self.offset, store.writer(None)?),
            };
            writer.write(bytes)?;
            self.run = Some((start, writer));
        }
        self.offset += bytes.len() as u64;
        Ok(())
    }

    fn lose(&mut self, length: u64, why: impl FnOnce() -> String) -> Result<()> {
        self.end_run()?;
        if self.lost.is_empty() {
            self.why = why();
        }
        let end = self.offset.saturating_add(length);
        match self.lost.last_mut() {
            Some(last) if last.end == self.offset => last.end = end,
            _ => self.lost.push(self.offset..end),
        }
        self.offset = end;
        Ok(())
    }

    pub fn end_run(&mut self) -> Result<()> {
        if let Some((start, writer)) = self.run.take() {
            self.written.push((start, writer.finish()?));
        }
        Ok(())
    }
}
