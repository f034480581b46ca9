//! Allocation of the numbers of maps and shared blobs.

use crate::format::key;
use crate::{Error, Result};
use kv::{Batch, Durability, Kv};
use runtime::sync::Mutex;

/// Numbers reserved on disk at a time, so that most commits need not write the counter.
const NUMBER_RUN: u64 = 1 << 16;

/// Allocator of numbers for maps and shared blobs, none of which is used twice.
pub(crate) struct Numbers {
    /// The next number, and the end of the run that is reserved on disk.
    state: Mutex<(u64, u64)>,
}

impl Numbers {
    /// Starts at `next`, the end of all runs ever reserved.
    pub fn new(next: u64) -> Self {
        Self {
            state: Mutex::new((next, next)),
        }
    }

    /// Reserves a run with `write`, unless at least half a run is left.
    pub fn reserve(&self, write: impl FnOnce(&Batch) -> Result<()>) -> Result<()> {
        let mut state = self.state.lock();
        match state.1 - state.0 < NUMBER_RUN / 2 {
            true => reserve(&mut state, write),
            false => Ok(()),
        }
    }

    /// A new number. The record that reserves a run in `kv` need not be synced: in the log, it precedes any batch that
    /// uses the run's numbers.
    pub fn take(&self, kv: &Kv) -> Result<u64> {
        let mut state = self.state.lock();
        let number = state.0;
        let next = next_number(number, u64::MAX)?;
        if number == state.1 {
            reserve(&mut state, |batch| {
                Ok(kv.write(batch, Durability::Buffered)?)
            })?;
        }
        state.0 = next;
        Ok(number)
    }
}

/// Reserves the run from the next number on.
fn reserve(state: &mut (u64, u64), write: impl FnOnce(&Batch) -> Result<()>) -> Result<()> {
    let end = state.0.saturating_add(NUMBER_RUN);
    let mut batch = Batch::default();
    batch.put(key::SUPER_NEXT_NUMBER, &end.to_le_bytes());
    write(&batch)?;
    state.1 = end;
    Ok(())
}

/// The number after `number`, at most `highest`; [`Error::Invalid`] above that, which only a damaged record can cause.
pub(crate) fn next_number(number: u64, highest: u64) -> Result<u64> {
    if number < highest {
        return Ok(number + 1);
    }
    Err(Error::Invalid {
        what: "the next number of a collection or a map",
        found: number,
        allowed: highest - 1,
    })
}
