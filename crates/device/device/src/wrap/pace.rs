//! A drive made as slow as another: one command at a time, with costs for the command, for moving
//! to another place, and for every byte.
//!
//! The clock comes from outside. The commands run at once and their answers are held back until
//! the modelled drive would have answered.

use crate::ZonedDevice;
use crate::file::HostMemory;
use runtime::Runtime;
use runtime::sync::{Mutex, MutexGuard};
use std::time::Duration;
use zone::{ByteOffset, Geometry, ZoneDescriptor, ZoneId, ZoneResult};

/// How fast a drive is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rates {
    /// Bytes read in a second; 0 means no limit.
    pub read_bytes_per_second: u64,
    /// Bytes written in a second; 0 means no limit.
    pub write_bytes_per_second: u64,
    /// What every command costs.
    pub command: Duration,
    /// What a read or write costs that does not begin where the one before ended.
    pub reposition: Duration,
    /// What a flush costs.
    pub flush: Duration,
}

/// A drive at the pace of [`Rates`].
#[derive(Debug)]
pub struct Pace<D> {
    inner: D,
    rates: Rates,
    runtime: Runtime,
    arm: Mutex<Arm>,
}

/// What the modelled drive is busy with.
#[derive(Clone, Copy, Debug)]
struct Arm {
    busy_until: Duration,
    /// Where the last read or write ended.
    at: u64,
}

impl<D: ZonedDevice> Pace<D> {
    /// Slows `inner` down.
    pub fn new(inner: D, rates: Rates, runtime: Runtime) -> Self {
        Self {
            inner,
            rates,
            runtime,
            arm: Mutex::new(Arm {
                busy_until: Duration::ZERO,
                at: 0,
            }),
        }
    }

    /// The drive inside.
    pub const fn inner(&self) -> &D {
        &self.inner
    }

    fn transfer(&self, at: ByteOffset, length: usize, bytes_per_second: u64) {
        let mut arm = self.arm.lock();
        let time = self.moving(&mut arm, at, length, bytes_per_second);
        self.spend(arm, time);
    }

    /// What it costs to move so many bytes, the arm included, which stands behind them then.
    fn moving(
        &self,
        arm: &mut Arm,
        at: ByteOffset,
        length: usize,
        bytes_per_second: u64,
    ) -> Duration {
        let bytes = length as u128 * 1_000_000_000;
        let nanos = bytes.checked_div(bytes_per_second.into()).unwrap_or(0);
        let moving = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let reposition = if arm.at == at.0 {
            Duration::ZERO
        } else {
            self.rates.reposition
        };
        arm.at = at.0 + length as u64;
        self.rates.command + reposition + moving
    }

    fn spend(&self, mut arm: MutexGuard<'_, Arm>, time: Duration) {
        arm.busy_until = arm.busy_until.max(self.runtime.now()) + time;
        let done = arm.busy_until;
        drop(arm);
        self.runtime.wait_until(done);
    }

    fn zone_command(&self, done: ZoneResult<()>) -> ZoneResult<()> {
        done?;
        self.spend(self.arm.lock(), self.rates.command);
        Ok(())
    }
}

impl<D: ZonedDevice> ZonedDevice for Pace<D> {
    fn geometry(&self) -> &Geometry {
        self.inner.geometry()
    }
    fn report(&self, first: ZoneId, count: u32) -> ZoneResult<Vec<ZoneDescriptor>> {
        self.inner.report(first, count)
    }
    fn read(&self, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        self.inner.read(at, buffer)?;
        self.transfer(at, buffer.len(), self.rates.read_bytes_per_second);
        Ok(())
    }
    /// One after the other in the order given, as if nobody else came between, and one answer. If
    /// one failed, they cost nothing.
    fn read_many(&self, reads: &mut [(ByteOffset, &mut [u8])]) -> ZoneResult<()> {
        self.inner.read_many(reads)?;
        let mut arm = self.arm.lock();
        let each = reads.iter().map(|(at, buffer)| {
            let rate = self.rates.read_bytes_per_second;
            self.moving(&mut arm, *at, buffer.len(), rate)
        });
        let time = each.sum();
        self.spend(arm, time);
        Ok(())
    }
    fn write(&self, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        self.inner.write(at, data)?;
        self.transfer(at, data.len(), self.rates.write_bytes_per_second);
        Ok(())
    }
    fn append(&self, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        let at = self.inner.append(zone, data)?;
        self.transfer(at, data.len(), self.rates.write_bytes_per_second);
        Ok(at)
    }
    fn open(&self, zone: ZoneId) -> ZoneResult<()> {
        self.zone_command(self.inner.open(zone))
    }
    fn close(&self, zone: ZoneId) -> ZoneResult<()> {
        self.zone_command(self.inner.close(zone))
    }
    fn finish(&self, zone: ZoneId) -> ZoneResult<()> {
        self.zone_command(self.inner.finish(zone))
    }
    fn reset(&self, zone: ZoneId) -> ZoneResult<()> {
        self.zone_command(self.inner.reset(zone))
    }
    fn host_free_bytes(&self) -> Option<u64> {
        self.inner.host_free_bytes()
    }
    fn host_memory(&self) -> Option<&HostMemory> {
        self.inner.host_memory()
    }
    fn flush(&self) -> ZoneResult<()> {
        self.inner.flush()?;
        self.spend(self.arm.lock(), self.rates.command + self.rates.flush);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDrive;
    use crate::profile;

    #[test]
    fn bytes_moves_and_flushes_cost_what_the_rates_say() {
        let g = profile::by_name("test-small")
            .unwrap()
            .geometry(16 << 20, None)
            .unwrap();
        let rates = Rates {
            read_bytes_per_second: 4096 * 1000,
            write_bytes_per_second: 4096 * 500,
            command: Duration::from_micros(1),
            reposition: Duration::from_millis(10),
            flush: Duration::from_millis(5),
        };
        let zone = ZoneId(5);
        let start = g.start(zone);
        let drive = Pace::new(MemoryDrive::new(g).unwrap(), rates, Runtime::seeded(0));
        let took = |run: &dyn Fn()| {
            let before = drive.runtime.now();
            run();
            drive.runtime.now() - before
        };
        let us = Duration::from_micros;
        assert_eq!(
            took(&|| drive.write(start, &[1; 8192]).unwrap()),
            us(10_000 + 4000 + 1)
        );
        let next = ByteOffset(start.0 + 8192);
        assert_eq!(
            took(&|| drive.write(next, &[1; 4096]).unwrap()),
            us(2000 + 1)
        );
        assert_eq!(
            took(&|| drive.read(start, &mut [0; 4096]).unwrap()),
            us(10_000 + 1000 + 1)
        );
        // To the first, and from there straight on into the second.
        assert_eq!(
            took(&|| {
                let (mut first, mut second) = ([0; 4096], [0; 8192]);
                let second_at = ByteOffset(start.0 + 4096);
                let mut reads = [(start, &mut first[..]), (second_at, &mut second[..])];
                drive.read_many(&mut reads).unwrap();
            }),
            us(10_000 + 1000 + 2000 + 2)
        );
        assert_eq!(took(&|| drive.flush().unwrap()), us(5001));
        assert_eq!(took(&|| drive.reset(zone).unwrap()), us(1));
        assert_eq!(
            took(&|| drop(drive.write(next, &[1; 4096]).unwrap_err())),
            us(0)
        );
    }
}
