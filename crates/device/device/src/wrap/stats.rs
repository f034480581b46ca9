//! Counts the commands passed to a drive: operations and bytes of each kind.
//!
//! Only commands that succeeded count. Counters are independent of each other: a snapshot taken while commands
//! run may contain one of a command's two counters and not the other.

use crate::file::HostMemory;
use crate::{Keeps, ZonedDevice};
use serde::Serialize;
use std::ops::Sub;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use zone::{ByteOffset, Geometry, ZoneCommand, ZoneDescriptor, ZoneId, ZoneResult};

/// A drive whose commands are counted.
#[derive(Debug)]
pub struct Stats<D> {
    inner: D,
    counters: [Counter; KINDS],
}

const KINDS: usize = 8;

#[derive(Debug, Default)]
struct Counter {
    operations: AtomicU64,
    bytes: AtomicU64,
}

/// Number of commands of one kind, and the bytes they transferred.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize)]
pub struct Count {
    /// Number of commands.
    pub operations: u64,
    /// Bytes transferred by all of them.
    pub bytes: u64,
}

/// Counts up to a moment, or between two.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize)]
pub struct StatsSnapshot {
    /// Reads.
    pub read: Count,
    /// Writes at an offset.
    pub write: Count,
    /// Zone appends.
    pub append: Count,
    /// Resets.
    pub reset: Count,
    /// Finishes.
    pub finish: Count,
    /// Explicit opens.
    pub open: Count,
    /// Closes.
    pub close: Count,
    /// Flushes.
    pub flush: Count,
}

impl StatsSnapshot {
    /// Bytes written by writes and appends.
    pub const fn bytes_written(&self) -> u64 {
        self.write.bytes + self.append.bytes
    }

    /// The counts since the snapshot `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        *self - *earlier
    }
}

impl Sub for Count {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self {
            operations: self.operations.saturating_sub(earlier.operations),
            bytes: self.bytes.saturating_sub(earlier.bytes),
        }
    }
}

impl Sub for StatsSnapshot {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self {
            read: self.read - earlier.read,
            write: self.write - earlier.write,
            append: self.append - earlier.append,
            reset: self.reset - earlier.reset,
            finish: self.finish - earlier.finish,
            open: self.open - earlier.open,
            close: self.close - earlier.close,
            flush: self.flush - earlier.flush,
        }
    }
}

const fn index(command: ZoneCommand) -> Option<usize> {
    Some(match command {
        ZoneCommand::Read => 0,
        ZoneCommand::Write => 1,
        ZoneCommand::Append => 2,
        ZoneCommand::Reset => 3,
        ZoneCommand::Finish => 4,
        ZoneCommand::Open => 5,
        ZoneCommand::Close => 6,
        ZoneCommand::Flush => 7,
        ZoneCommand::Report => return None,
    })
}

impl<D: ZonedDevice> Stats<D> {
    /// Counts the commands to `inner` from now on.
    pub fn new(inner: D) -> Self {
        Self {
            inner,
            counters: Default::default(),
        }
    }

    /// The drive below.
    pub const fn inner(&self) -> &D {
        &self.inner
    }

    /// The counts so far.
    pub fn snapshot(&self) -> StatsSnapshot {
        let count = |command| {
            let Some(index) = index(command) else {
                return Count::default();
            };
            let counter = &self.counters[index];
            Count {
                operations: counter.operations.load(Relaxed),
                bytes: counter.bytes.load(Relaxed),
            }
        };
        StatsSnapshot {
            read: count(ZoneCommand::Read),
            write: count(ZoneCommand::Write),
            append: count(ZoneCommand::Append),
            reset: count(ZoneCommand::Reset),
            finish: count(ZoneCommand::Finish),
            open: count(ZoneCommand::Open),
            close: count(ZoneCommand::Close),
            flush: count(ZoneCommand::Flush),
        }
    }

    fn count<T>(&self, command: ZoneCommand, bytes: usize, done: ZoneResult<T>) -> ZoneResult<T> {
        if let (Ok(_), Some(index)) = (&done, index(command)) {
            let counter = &self.counters[index];
            counter.operations.fetch_add(1, Relaxed);
            counter.bytes.fetch_add(bytes as u64, Relaxed);
        }
        done
    }
}

impl<D: ZonedDevice> ZonedDevice for Stats<D> {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }
    fn report(&self, first: ZoneId, count: u32) -> ZoneResult<Vec<ZoneDescriptor>> {
        self.inner.report(first, count)
    }
    fn read(&self, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        self.count(ZoneCommand::Read, buffer.len(), self.inner.read(at, buffer))
    }
    /// Counts each read; none if the call failed, because it is unknown which reads were done.
    fn read_many(&self, reads: &mut [(ByteOffset, &mut [u8])]) -> ZoneResult<()> {
        self.inner.read_many(reads)?;
        let counted =
            |(_, buffer): &(_, &mut [u8])| self.count(ZoneCommand::Read, buffer.len(), Ok(()));
        reads.iter().try_for_each(counted)
    }
    fn write(&self, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        self.count(ZoneCommand::Write, data.len(), self.inner.write(at, data))
    }
    fn append(&self, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        self.count(
            ZoneCommand::Append,
            data.len(),
            self.inner.append(zone, data),
        )
    }
    fn open(&self, zone: ZoneId) -> ZoneResult<()> {
        self.count(ZoneCommand::Open, 0, self.inner.open(zone))
    }
    fn close(&self, zone: ZoneId) -> ZoneResult<()> {
        self.count(ZoneCommand::Close, 0, self.inner.close(zone))
    }
    fn finish(&self, zone: ZoneId) -> ZoneResult<()> {
        self.count(ZoneCommand::Finish, 0, self.inner.finish(zone))
    }
    fn reset(&self, zone: ZoneId) -> ZoneResult<()> {
        self.count(ZoneCommand::Reset, 0, self.inner.reset(zone))
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
        self.count(ZoneCommand::Flush, 0, self.inner.flush())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryDrive, profile};

    #[test]
    fn what_was_done_counts_and_what_was_refused_does_not() {
        let g = profile::by_name("test-small")
            .unwrap()
            .geometry(16 << 20, None)
            .unwrap();
        let zone = ZoneId(5);
        let start = g.start(zone);
        let drive = Stats::new(MemoryDrive::new(g).unwrap());
        drive.write(start, &[1; 8192]).unwrap();
        drive.write(start, &[1; 8192]).unwrap_err();
        let before = drive.snapshot();
        drive.append(zone, &[1; 4096]).unwrap();
        drive.read(start, &mut [0; 12288]).unwrap();
        let (mut one_block, mut two_blocks) = ([0; 4096], [0; 8192]);
        let mut reads = [(start, &mut one_block[..]), (start, &mut two_blocks[..])];
        drive.read_many(&mut reads).unwrap();
        reads[1].0 = ByteOffset(1);
        drive.read_many(&mut reads).unwrap_err();
        drive.open(zone).unwrap();
        drive.close(zone).unwrap();
        drive.finish(zone).unwrap();
        drive.reset(zone).unwrap();
        drive.flush().unwrap();
        let one = |bytes| Count {
            operations: 1,
            bytes,
        };
        assert_eq!(
            before,
            StatsSnapshot {
                write: one(8192),
                ..Default::default()
            }
        );
        assert_eq!(
            drive.snapshot().since(&before),
            StatsSnapshot {
                read: Count {
                    operations: 3,
                    bytes: 2 * 12288,
                },
                write: Count::default(),
                append: one(4096),
                reset: one(0),
                finish: one(0),
                open: one(0),
                close: one(0),
                flush: one(0),
            }
        );
        assert_eq!(drive.snapshot().bytes_written(), 12288);
    }
}
