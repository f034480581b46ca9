//! Free space of the host's disk under a drive file, without a system call for every write.
//!
//! While much is free, one answer of the host serves for 100 ms, as other programs write to the disk too, and for a
//! sixteenth of the free bytes. Near the end, every question goes to the host.

use device::ZonedDevice;
use runtime::Runtime;
use runtime::sync::Mutex;
use std::time::Duration;

/// Free bytes beyond those kept from which on an answer of the host is reused.
const PLENTY: u64 = 1 << 30;
/// One in this many free bytes may be admitted on one answer.
const PART: u64 = 16;
/// How long an answer may be reused.
const FRESH: Duration = Duration::from_millis(100);

/// The host's last answer about free space, and what has been admitted on it.
pub(crate) struct HostSpace {
    runtime: Runtime,
    answer: Mutex<Answer>,
    /// Most bytes free since [`Self::has_lost`] last returned true.
    most: Mutex<u64>,
}

#[derive(Default)]
struct Answer {
    at: Duration,
    /// Bytes that may still be admitted on this answer.
    left: u64,
}

impl HostSpace {
    pub fn new(runtime: Runtime) -> Self {
        Self {
            runtime,
            answer: Mutex::default(),
            most: Mutex::default(),
        }
    }

    /// Whether `bytes` fewer are free than the most since this last returned true; false if the drive is not in a file.
    pub fn has_lost(&self, device: &dyn ZonedDevice, bytes: u64) -> bool {
        let Some(free) = device.host_free_bytes() else {
            return false;
        };
        let mut most = self.most.lock();
        let has_lost = free.saturating_add(bytes) <= *most;
        *most = if has_lost { free } else { free.max(*most) };
        has_lost
    }

    /// Whether `bytes` can be written to `device` and `kept` are still left on the host's disk.
    pub fn has(&self, device: &dyn ZonedDevice, bytes: u64, kept: u64) -> bool {
        let mut answer = self.answer.lock();
        let now = self.runtime.now();
        if answer.left > bytes && now.saturating_sub(answer.at) < FRESH {
            answer.left -= bytes;
            return true;
        }
        let Some(free) = device.host_free_bytes() else {
            return true;
        };
        let spare = free.saturating_sub(kept);
        let left = if spare >= PLENTY { spare / PART } else { 0 };
        *answer = Answer {
            at: now,
            left: left.saturating_sub(bytes),
        };
        spare >= bytes && free >= kept
    }
}
