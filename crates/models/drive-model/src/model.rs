//! What all models have in common.

use crate::request::{Completion, Lba, Request, Tag};
use crate::statistics::ModelStatistics;
use crate::time::Time;
use device::rules::ZoneTable;
use std::ops::Range;

/// A drive in virtual time. One request at a time goes by [`submit`](Self::submit), several by
/// [`enqueue`](Self::enqueue) and [`next_completion`](Self::next_completion).
pub trait Model: std::fmt::Debug + Send {
    /// Logical blocks of [`BLOCK_BYTES`](crate::BLOCK_BYTES), gaps behind zones included.
    fn blocks(&self) -> u64;

    /// One request alone: its end. Those that were enqueued before are served with it and keep
    /// their completions.
    fn submit(&mut self, request: Request, now: Time) -> Completion;

    /// Takes a request, which comes at `now` and not before the last one came.
    fn enqueue(&mut self, request: Request, now: Time) -> Tag;

    /// The next request to be complete, if the host waits for any.
    fn next_completion(&mut self) -> Option<Completion>;

    /// Lets time pass until `now`, and answers the next request that is complete by then. For those
    /// who cannot know what comes after `now`, which may yet be served before what waits.
    fn completion_by(&mut self, now: Time) -> Option<Completion>;

    /// When something may be complete that [`completion_by`](Self::completion_by) did not answer, if
    /// nothing more comes: a reason to ask again then, nothing if the host waits for none.
    fn next_moment(&self) -> Option<Time>;

    /// Lets time pass until `now` without a request.
    fn idle_until(&mut self, now: Time);

    /// Cuts the power at `now` and puts it on again: what would not have survived that is gone, with
    /// the requests that wait, whose completions say so.
    fn power_cut(&mut self, now: Time) -> Vec<Completion>;

    /// What has been counted.
    fn statistics(&self) -> ModelStatistics;

    /// Its whole state in bytes, for [`state`](crate::state); nothing if it cannot be saved.
    fn saved(&self) -> Option<Vec<u8>> {
        None
    }

    /// Whether it makes something of a trim.
    fn takes_trim(&self) -> bool {
        false
    }

    /// Whether it has platters that turn.
    fn is_rotational(&self) -> bool {
        false
    }

    /// The blocks behind these that writing them may damage, if the host has to know (Caveat-Scriptor).
    fn endangered(&self, lba: Lba, blocks: u64) -> Range<u64> {
        let end = lba.0 + blocks;
        end..end
    }

    /// The first of these blocks that cannot be read on the medium: damaged, or never written where that is the
    /// same.
    fn first_damaged(&self, _lba: Lba, _blocks: u64) -> Option<Lba> {
        None
    }

    /// Switches the volatile write cache (`hdparm -W`); whether there is such a switch.
    fn set_volatile_cache(&mut self, _on: bool) -> bool {
        false
    }

    /// Switches reading ahead (`hdparm -A`); whether there is such a switch.
    fn set_look_ahead(&mut self, _on: bool) -> bool {
        false
    }

    /// Conditions and write pointers of its zones, if it has any.
    fn zones(&self) -> Option<&ZoneTable> {
        None
    }
}
