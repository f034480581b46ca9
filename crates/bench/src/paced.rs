//! A drive whose commands take as long as is asked for.

use device::ZonedDevice;
use device::changed::Change;
use runtime::Runtime;
use runtime::sync::Mutex;
use std::time::Duration;
use zone::{ByteOffset, ZoneId, ZoneResult};

/// The host wakes a thread this much late. A medium is not idle for as long, so where bytes take time that is waited for awake.
const SLACK: Duration = Duration::from_micros(100);

/// How long commands take at least.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// A write, an append or a flush, whatever else is under way.
    pub command: Duration,
    /// Bytes that are read and written a second, one command after the other; none: as many as can be.
    pub bytes_per_second: Option<u64>,
}

/// Waits behind each command until it has taken so long.
pub struct Paced {
    clock: Runtime,
    pace: Pace,
    /// Until when the medium is busy.
    busy_until: Mutex<Duration>,
}

impl Paced {
    pub fn new(pace: Pace) -> Self {
        Self {
            clock: Runtime::system(),
            pace,
            busy_until: Mutex::new(Duration::ZERO),
        }
    }

    /// Does what a command of so many bytes does, and comes back when it has taken as long as it takes.
    fn take<T>(&self, command: Duration, bytes: usize, does: impl FnOnce() -> T) -> T {
        let mut end = self.clock.now() + command;
        if let Some(rate) = self.pace.bytes_per_second {
            let mut busy_until = self.busy_until.lock();
            let took = Duration::from_secs_f64(bytes as f64 / rate as f64);
            end = end.max(*busy_until) + took;
            *busy_until = end;
        }
        let done = does();
        if self.pace.bytes_per_second.is_some() {
            self.clock.wait_until(end.saturating_sub(SLACK));
            while self.clock.now() < end {
                std::hint::spin_loop();
            }
        }
        self.clock.wait_until(end);
        done
    }
}

impl<D: ZonedDevice> Change<D> for Paced {
    fn read(&self, drive: &D, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        self.take(Duration::ZERO, buffer.len(), || drive.read(at, buffer))
    }

    fn write(&self, drive: &D, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        self.take(self.pace.command, data.len(), || drive.write(at, data))
    }

    fn append(&self, drive: &D, zone: ZoneId, data: &[u8]) -> ZoneResult<ByteOffset> {
        self.take(self.pace.command, data.len(), || drive.append(zone, data))
    }

    fn flush(&self, drive: &D) -> ZoneResult<()> {
        self.take(self.pace.command, 0, || drive.flush())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use device::MemoryDrive;
    use device::changed::Changed;

    #[test]
    fn commands_take_their_time_and_bytes_wait_for_each_other() {
        let geometry = device::profile::by_name("test-small")
            .unwrap()
            .geometry(16 << 20, None)
            .unwrap();
        let first = geometry.conventional_zones;
        let pace = Pace {
            command: Duration::from_millis(1),
            bytes_per_second: Some(16 << 20),
        };
        let drive = Changed {
            drive: MemoryDrive::new(geometry).unwrap(),
            change: Paced::new(pace),
        };
        let clock = Runtime::system();
        let start = clock.now();
        std::thread::scope(|scope| {
            for zone in [ZoneId(first), ZoneId(first + 1)] {
                let drive = &drive;
                scope.spawn(move || {
                    let at = drive.geometry().absolute(zone::ZoneAddress::new(zone, 0));
                    drive.write(at, &[1; 256 << 10]).unwrap();
                });
            }
        });
        // Twice 256 KiB at 16 MiB/s are 32 ms; a machine may take longer.
        assert!(clock.now() - start >= Duration::from_millis(32));
        let start = clock.now();
        drive.flush().unwrap();
        assert!(clock.now() - start >= Duration::from_millis(1));
    }
}
