//! Passes an event for every command of a drive to a sink.
//!
//! Sequence numbers are assigned when a command has completed, without a lock: events of concurrent commands
//! may reach the sink in another order than that of their numbers.

use crate::file::HostMemory;
use crate::{Keeps, ZonedDevice};
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use zone::{ByteOffset, Geometry, ZoneCommand, ZoneDescriptor, ZoneError, ZoneId, ZoneResult};

/// A command that has completed.
#[derive(Clone, Debug, Serialize)]
pub struct Event {
    /// Counts from 0.
    pub sequence: u64,
    /// The kind of command.
    pub command: ZoneCommand,
    /// Its first byte: for a zone append that succeeded, the address that the drive chose; for a command on a
    /// zone, the zone's start; 0 for a flush.
    pub at: ByteOffset,
    /// Length in bytes; for a report, the most zones.
    pub length: u64,
    /// The error, if the command failed.
    #[serde(serialize_with = "as_text")]
    pub error: Option<ZoneError>,
}

fn as_text<S: serde::Serializer>(error: &Option<ZoneError>, to: S) -> Result<S::Ok, S::Error> {
    error.as_ref().map(ToString::to_string).serialize(to)
}

/// Receives events. It is called by the thread that issued the command, before the command returns.
pub type Sink = Arc<dyn Fn(&Event) + Send + Sync>;

/// A drive whose commands are traced.
pub struct Trace<D> {
    inner: D,
    sink: Sink,
    next: AtomicU64,
}

impl<D: std::fmt::Debug> std::fmt::Debug for Trace<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trace")
            .field("inner", &self.inner)
            .field("next", &self.next)
            .finish()
    }
}

impl<D: ZonedDevice> Trace<D> {
    /// Passes an event for every command of `inner` to `sink`.
    pub fn new(inner: D, sink: Sink) -> Self {
        Self {
            inner,
            sink,
            next: AtomicU64::new(0),
        }
    }

    /// The drive below.
    pub const fn inner(&self) -> &D {
        &self.inner
    }

    fn tell<T>(
        &self,
        command: ZoneCommand,
        at: ByteOffset,
        length: u64,
        done: ZoneResult<T>,
    ) -> ZoneResult<T> {
        let sequence = self.next.fetch_add(1, Relaxed);
        let error = done.as_ref().err().cloned();
        (self.sink)(&Event {
            sequence,
            command,
            at,
            length,
            error,
        });
        done
    }

    fn zone_start(&self, zone: ZoneId) -> ByteOffset {
        ByteOffset(self.geometry().zone_size.saturating_mul(zone.0.into()))
    }
}

impl<D: ZonedDevice> ZonedDevice for Trace<D> {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }
    fn report(&self, first: ZoneId, count: u32) -> ZoneResult<Vec<ZoneDescriptor>> {
        let done = self.inner.report(first, count);
        self.tell(
            ZoneCommand::Report,
            self.zone_start(first),
            count.into(),
            done,
        )
    }
    fn read(&self, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        let done = self.inner.read(at, buffer);
        self.tell(ZoneCommand::Read, at, buffer.len() as u64, done)
    }
    /// Traces each read; if the call failed, all reads with its error, because it is unknown which were done.
    fn read_many(&self, reads: &mut [(ByteOffset, &mut [u8])]) -> ZoneResult<()> {
        let done = self.inner.read_many(reads);
        for (at, buffer) in reads {
            let length = buffer.len() as u64;
            let _ = self.tell(ZoneCommand::Read, *at, length, done.clone());
        }
        done
    }
    fn write(&self, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        self.tell(
            ZoneCommand::Write,
            at,
            data.len() as u64,
            self.inner.write(at, data),
        )
    }
    fn append(&self, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        let done = self.inner.append(zone, data);
        let at = *done.as_ref().unwrap_or(&self.zone_start(zone));
        self.tell(ZoneCommand::Append, at, data.len() as u64, done)
    }
    fn open(&self, zone: ZoneId) -> ZoneResult<()> {
        self.tell(
            ZoneCommand::Open,
            self.zone_start(zone),
            0,
            self.inner.open(zone),
        )
    }
    fn close(&self, zone: ZoneId) -> ZoneResult<()> {
        self.tell(
            ZoneCommand::Close,
            self.zone_start(zone),
            0,
            self.inner.close(zone),
        )
    }
    fn finish(&self, zone: ZoneId) -> ZoneResult<()> {
        self.tell(
            ZoneCommand::Finish,
            self.zone_start(zone),
            0,
            self.inner.finish(zone),
        )
    }
    fn reset(&self, zone: ZoneId) -> ZoneResult<()> {
        self.tell(
            ZoneCommand::Reset,
            self.zone_start(zone),
            0,
            self.inner.reset(zone),
        )
    }
    fn host_free_bytes(&self) -> Option<u64> {
        self.inner.host_free_bytes()
    }
    fn keeps(&self) -> Keeps {
        self.inner.keeps()
    }
    fn host_memory(&self) -> Option<&HostMemory> {
        self.inner.host_memory()
    }
    fn flush(&self) -> ZoneResult<()> {
        self.tell(ZoneCommand::Flush, ByteOffset(0), 0, self.inner.flush())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryDrive, profile};
    use runtime::sync::Mutex;

    #[test]
    fn every_command_is_told_with_its_place_and_its_error() {
        let g = profile::by_name("test-small")
            .unwrap()
            .geometry(16 << 20, None)
            .unwrap();
        let zone = ZoneId(5);
        let start = g.start(zone);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&seen);
        let sink: Sink = Arc::new(move |event| into.lock().push(event.clone()));
        let drive = Trace::new(MemoryDrive::new(g).unwrap(), sink);
        drive.write(start, &[1; 8192]).unwrap();
        drive.append(zone, &[1; 4096]).unwrap();
        drive.write(start, &[1; 4096]).unwrap_err();
        drive.flush().unwrap();
        let mut buffers = [[0; 4096]; 2];
        let [first, second] = &mut buffers;
        let mut reads = [(start, &mut first[..]), (ByteOffset(0), &mut second[..])];
        drive.read_many(&mut reads).unwrap();
        reads[1].0 = ByteOffset(1);
        drive.read_many(&mut reads).unwrap_err();
        let seen: Vec<_> = seen
            .lock()
            .iter()
            .map(|e| (e.sequence, e.command, e.at.0, e.length, e.error.is_some()))
            .collect();
        assert_eq!(
            seen,
            [
                (0, ZoneCommand::Write, start.0, 8192, false),
                (1, ZoneCommand::Append, start.0 + 8192, 4096, false),
                (2, ZoneCommand::Write, start.0, 4096, true),
                (3, ZoneCommand::Flush, 0, 0, false),
                (4, ZoneCommand::Read, start.0, 4096, false),
                (5, ZoneCommand::Read, 0, 4096, false),
                (6, ZoneCommand::Read, start.0, 4096, true),
                (7, ZoneCommand::Read, 1, 4096, true),
            ]
        );
    }
}
