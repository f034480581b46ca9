//! What the host's disk under the drive has left, without asking the host for every piece of data.
//!
//! Far from full, an answer is good for a while: until a small part of what it left has been admitted, and
//! not for long, for others write to the disk too. Near the end every question goes to the host.

use device::ZonedDevice;
use runtime::Runtime;
use runtime::sync::Mutex;
use std::time::Duration;

/// An answer is not asked for again while so much more is free than has to be.
const PLENTY: u64 = 1 << 30;
/// This part of what is free may be admitted on one answer,
const PART: u64 = 16;
/// for so long.
const FRESH: Duration = Duration::from_millis(100);

/// See the head of this file.
pub(crate) struct HostSpace {
    runtime: Runtime,
    answer: Mutex<Answer>,
    /// The most bytes that were free since [`Self::has_lost`] last said so.
    most: Mutex<u64>,
}

#[derive(Default)]
struct Answer {
    at: Duration,
    /// Bytes that may still be admitted on it.
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

    /// Whether `bytes` less are free than there have been since this last said so.
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
