//! Room on the host's disk under a drive file for bytes that wait in memory.
//!
//! While enough is free, an answer of the host is reused for a short time and for some bytes.

use std::time::Duration;

/// Most bytes that may begin to wait on one answer of the host.
const AT_ONCE: u64 = 64 << 10;
/// How long an answer may be reused: other programs write to the disk too.
const FRESH: Duration = Duration::from_millis(100);
/// Bytes left free for frames, so that syncs and removals go on, also if a drive's file takes space ahead of small writes: a
/// MiB in each zone, of three streams and two areas.
const SPARE: u64 = 6 << 20;
/// One byte in this many is for labels and metadata of extents, and for checksums in frames.
const PART: u64 = 64;

/// The host's last answer about free space.
#[derive(Default, Debug)]
pub(crate) struct HostRoom {
    at: Duration,
    /// Bytes that may wait on it, with those that waited when it was given.
    most: u64,
}

impl HostRoom {
    /// An answer that came at `now`, while `waiting` bytes waited: `left` bytes more may wait.
    pub fn new(now: Duration, waiting: u64, left: u64) -> Self {
        let most = waiting + left.min(AT_ONCE);
        Self { at: now, most }
    }

    /// Whether `waiting` bytes may wait on this answer.
    pub fn covers(&self, now: Duration, waiting: u64) -> bool {
        waiting <= self.most && now.saturating_sub(self.at) < FRESH
    }

    /// Bytes of the host's disk for `waiting` bytes and the frames that name them.
    pub const fn needed(waiting: u64) -> u64 {
        waiting + waiting / PART + SPARE
    }
}
