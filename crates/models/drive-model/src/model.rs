//! The interface that all drive models implement.

use crate::request::{Completion, Lba, Request, Tag};
use crate::statistics::ModelStatistics;
use crate::time::Time;
use device::rules::ZoneTable;
use std::ops::Range;

/// A drive in virtual time. [`submit`](Self::submit) serves one request at a time; [`enqueue`](Self::enqueue) and
/// [`next_completion`](Self::next_completion) serve several.
pub trait Model: std::fmt::Debug + Send {
    /// Logical blocks of [`BLOCK_BYTES`](crate::BLOCK_BYTES), including the gaps after zone capacities.
    fn blocks(&self) -> u64;

    /// Serves one request to its completion. Requests that were enqueued earlier are served with it and keep their
    /// completions.
    fn submit(&mut self, request: Request, now: Time) -> Completion;

    /// Queues a request that arrives at `now`, which is not before the arrival of the last one.
    fn enqueue(&mut self, request: Request, now: Time) -> Tag;

    /// The next completion; `None` if the host waits for no request.
    fn next_completion(&mut self) -> Option<Completion>;

    /// Lets time pass until `now`, and returns the next completion by then. For callers that do not know which requests
    /// arrive after `now`: a later one may be served before one that waits.
    fn completion_by(&mut self, now: Time) -> Option<Completion>;

    /// The time at which [`completion_by`](Self::completion_by) may have another completion if no request arrives until
    /// then: the caller should ask again at that time. `None` if the host waits for no request.
    fn next_moment(&self) -> Option<Time>;

    /// Lets time pass until `now` without a request.
    fn idle_until(&mut self, now: Time);

    /// Cuts the power at `now` and restores it: all that is volatile is lost. Returns the completions of waiting
    /// requests, which fail.
    fn power_cut(&mut self, now: Time) -> Vec<Completion>;

    /// Counters since the start.
    fn statistics(&self) -> ModelStatistics;

    /// The whole state as bytes, for [`state`](crate::state); `None` if it cannot be saved.
    fn saved(&self) -> Option<Vec<u8>> {
        None
    }

    /// Whether a trim has any effect.
    fn takes_trim(&self) -> bool {
        false
    }

    /// Whether the drive has rotating platters.
    fn is_rotational(&self) -> bool {
        false
    }

    /// The blocks after these that writing them may damage, if the host has to know (Caveat-Scriptor).
    fn endangered(&self, lba: Lba, blocks: u64) -> Range<u64> {
        let end = lba.0 + blocks;
        end..end
    }

    /// The first of these blocks that cannot be read on the medium: damaged, or on some drives never written.
    fn first_damaged(&self, _lba: Lba, _blocks: u64) -> Option<Lba> {
        None
    }

    /// Switches the volatile write cache (`hdparm -W`); `false` if the drive has no such switch.
    fn set_volatile_cache(&mut self, _on: bool) -> bool {
        false
    }

    /// Switches read-ahead (`hdparm -A`); `false` if the drive has no such switch.
    fn set_look_ahead(&mut self, _on: bool) -> bool {
        false
    }

    /// Conditions and write pointers of the zones, if the drive has zones.
    fn zones(&self) -> Option<&ZoneTable> {
        None
    }
}
