//! A wrapper of a drive whose commands take at least a given time.

use device::ZonedDevice;
use device::changed::Change;
use runtime::Runtime;
use runtime::sync::Mutex;
use std::time::Duration;
use zone::{ByteOffset, ZoneId, ZoneResult};

/// A sleeping thread may wake this much late. With a byte rate, the medium would be idle meanwhile, so the last part
/// of the time is a busy loop.
const SLACK: Duration = Duration::from_micros(100);

/// The least times of commands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// Time of a write, an append or a flush, independent of other commands.
    pub command: Duration,
    /// Bytes that are read and written a second, one command after the other; `None` for no limit.
    pub bytes_per_second: Option<u64>,
}

/// Waits after each command until it has taken its time.
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

    /// Does a command of `bytes` bytes with `does`, and returns when it has taken its time.
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
