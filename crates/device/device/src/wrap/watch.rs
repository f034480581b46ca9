//! A drive that records which of its commands are in flight, and since when, so that a command that hangs can
//! be reported instead of blocking its callers silently.
//!
//! Costs two short locks and a reading of the clock for each command.

use crate::file::HostMemory;
use crate::{Keeps, ZonedDevice};
use runtime::Runtime;
use runtime::sync::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use zone::{ByteOffset, Geometry, ZoneCommand, ZoneDescriptor, ZoneId, ZoneResult};

/// A command in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiting {
    /// Number of the command, which grows with each one.
    pub number: u64,
    /// The kind of command.
    pub command: ZoneCommand,
    /// The zone it begins in; `None` for a command that is not of one zone.
    pub zone: Option<ZoneId>,
    /// Time since it was issued.
    pub age: Duration,
}

#[derive(Clone, Copy)]
struct Begun {
    number: u64,
    command: ZoneCommand,
    zone: Option<ZoneId>,
    at: Duration,
}

/// A part of the commands, in any order, so that threads seldom contend; on a processor cache line of its own.
#[derive(Default)]
#[repr(align(64))]
struct Part(Mutex<Vec<Begun>>);

const PARTS: usize = 16;

/// The commands in flight of a drive.
pub struct UnderWay {
    runtime: Runtime,
    next: AtomicU64,
    parts: [Part; PARTS],
}

impl UnderWay {
    /// The commands that have been in flight for at least `age`, the oldest first.
    pub fn longer_than(&self, age: Duration) -> Vec<Waiting> {
        let now = self.runtime.now();
        let mut all = Vec::new();
        for Part(begun) in &self.parts {
            let begun = begun.lock();
            all.extend(begun.iter().map(|begun| Waiting {
                number: begun.number,
                command: begun.command,
                zone: begun.zone,
                age: now.saturating_sub(begun.at),
            }));
        }
        all.retain(|waiting| waiting.age >= age);
        all.sort_unstable_by_key(|waiting| waiting.number);
        all
    }

    fn part(&self, number: u64) -> &Mutex<Vec<Begun>> {
        &self.parts[number as usize % PARTS].0
    }

    fn during<T>(&self, command: ZoneCommand, zone: Option<ZoneId>, run: impl FnOnce() -> T) -> T {
        let at = self.runtime.now();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.part(number).lock().push(Begun {
            number,
            command,
            zone,
            at,
        });
        let _ends = Ends {
            under_way: self,
            number,
        };
        run()
    }
}

/// Removes a command when dropped, also if the drive panics.
struct Ends<'a> {
    under_way: &'a UnderWay,
    number: u64,
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        let mut begun = self.under_way.part(self.number).lock();
        if let Some(at) = begun.iter().rposition(|b| b.number == self.number) {
            begun.swap_remove(at);
        }
    }
}

/// A drive whose commands are recorded while they are in flight.
pub struct Watch<D> {
    inner: D,
    under_way: Arc<UnderWay>,
}

impl<D: ZonedDevice> Watch<D> {
    /// Records the commands of `inner`.
    pub fn new(inner: D, runtime: Runtime) -> Self {
        let under_way = Arc::new(UnderWay {
            runtime,
            next: AtomicU64::new(0),
            parts: Default::default(),
        });
        Self { inner, under_way }
    }

    /// The commands in flight.
    pub const fn under_way(&self) -> &Arc<UnderWay> {
        &self.under_way
    }

    fn at<T>(&self, command: ZoneCommand, at: ByteOffset, run: impl FnOnce(&D) -> T) -> T {
        let zone = self.inner.geometry().address(at).map(|place| place.zone);
        self.under_way.during(command, zone, || run(&self.inner))
    }

    fn of<T>(&self, command: ZoneCommand, zone: ZoneId, run: impl FnOnce(&D) -> T) -> T {
        self.under_way
            .during(command, Some(zone), || run(&self.inner))
    }
}

impl<D: ZonedDevice> ZonedDevice for Watch<D> {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }
    fn report(&self, first: ZoneId, count: u32) -> ZoneResult<Vec<ZoneDescriptor>> {
        self.of(ZoneCommand::Report, first, |d| d.report(first, count))
    }
    fn read(&self, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        self.at(ZoneCommand::Read, at, |d| d.read(at, buffer))
    }
    fn read_many(&self, reads: &mut [(ByteOffset, &mut [u8])]) -> ZoneResult<()> {
        let Some((first, _)) = reads.first() else {
            return Ok(());
        };
        self.at(ZoneCommand::Read, *first, |d| d.read_many(reads))
    }
    fn write(&self, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        self.at(ZoneCommand::Write, at, |d| d.write(at, data))
    }
    fn append(&self, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        self.of(ZoneCommand::Append, zone, |d| d.append(zone, data))
    }
    fn open(&self, zone: ZoneId) -> ZoneResult<()> {
        self.of(ZoneCommand::Open, zone, |d| d.open(zone))
    }
    fn close(&self, zone: ZoneId) -> ZoneResult<()> {
        self.of(ZoneCommand::Close, zone, |d| d.close(zone))
    }
    fn finish(&self, zone: ZoneId) -> ZoneResult<()> {
        self.of(ZoneCommand::Finish, zone, |d| d.finish(zone))
    }
    fn reset(&self, zone: ZoneId) -> ZoneResult<()> {
        self.of(ZoneCommand::Reset, zone, |d| d.reset(zone))
    }
    // Not recorded: this asks the host, not the drive.
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
        let flush = || self.inner.flush();
        self.under_way.during(ZoneCommand::Flush, None, flush)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::{Fault, Faults, Gate, Plan};
    use crate::{MemoryDrive, profile};

    #[test]
    fn names_the_command_that_does_not_come_back() {
        let g = profile::by_name("test-small").unwrap();
        let g = g.geometry(16 << 20, None).unwrap();
        let (gate, runtime) = (Gate::new(), Runtime::seeded(0));
        let faults = Faults::new(MemoryDrive::new(g.clone()).unwrap());
        faults.add(Plan::at(
            ZoneCommand::Reset,
            1,
            Fault::Stuck(Arc::clone(&gate)),
        ));
        let drive = Watch::new(faults, runtime.clone());
        let zone = ZoneId(5);
        std::thread::scope(|scope| {
            let stuck = scope.spawn(|| drive.reset(zone));
            gate.wait_until_stuck(1);
            drive.write(g.start(ZoneId(6)), &[1; 4096]).unwrap();
            let limit = Duration::from_secs(10);
            assert_eq!(drive.under_way().longer_than(limit), []);
            runtime.wait_until(Duration::from_secs(12));
            let waiting = drive.under_way().longer_than(limit);
            let [one] = waiting[..] else {
                panic!("{waiting:?}")
            };
            assert_eq!((one.command, one.zone), (ZoneCommand::Reset, Some(zone)));
            assert_eq!(one.age, Duration::from_secs(12));
            gate.release();
            stuck.join().unwrap().unwrap();
        });
        assert_eq!(drive.under_way().longer_than(Duration::ZERO), []);
    }
}
