//! Allocation of the numbers of maps and shared blobs.

use crate::format::key;
use crate::{Error, Result};
use kv::Batch;
use runtime::sync::Mutex;

/// Numbers reserved on disk at a time, so that most commits need not write the counter.
const NUMBER_RUN: u64 = 1 << 16;

/// Allocator of numbers for maps and shared blobs, none of which is used twice.
pub(crate) struct Numbers {
    /// The next number, and the end of the run that is reserved on disk.
    state: Mutex<(u64, u64)>,
    /// Held while a run is reserved, which may have to wait for space. Taken before `state`, which is not held meanwhile.
    reserving: Mutex<()>,
}

impl Numbers {
    /// Starts at `next`, the end of all runs ever reserved.
    pub fn new(next: u64) -> Self {
        Self {
            state: Mutex::new((next, next)),
            reserving: Mutex::default(),
        }
    }

    /// Reserves a run with `write`, unless at least half a run is left.
    pub fn reserve(&self, write: impl FnOnce(&Batch) -> Result<()>) -> Result<()> {
        match self.left() < NUMBER_RUN / 2 {
            true => self.reserve_if_below(NUMBER_RUN / 2, write),
            false => Ok(()),
        }
    }

    /// A new number. If none is left, `write` writes the record that reserves a run. It need not be synced: in the log,
    /// it precedes any batch that uses the run's numbers.
    ///
    /// # Errors
    /// That of `write`; no number is taken then.
    pub fn take(&self, write: impl Fn(&Batch) -> Result<()>) -> Result<u64> {
        loop {
            let mut state = self.state.lock();
            let (number, end) = *state;
            let next = next_number(number, u64::MAX)?;
            if number < end {
                state.0 = next;
                return Ok(number);
            }
            drop(state);
            self.reserve_if_below(1, &write)?;
        }
    }

    /// How many numbers are left of the run.
    fn left(&self) -> u64 {
        let state = self.state.lock();
        state.1 - state.0
    }

    /// Reserves the run from the next number on with `write`, unless so many are left once no other thread reserves one.
    fn reserve_if_below(&self, left: u64, write: impl FnOnce(&Batch) -> Result<()>) -> Result<()> {
        let _alone = self.reserving.lock();
        if self.left() >= left {
            return Ok(());
        }
        let end = self.state.lock().0.saturating_add(NUMBER_RUN);
        let mut batch = Batch::default();
        batch.put(key::SUPER_NEXT_NUMBER, &end.to_le_bytes());
        write(&batch)?;
        self.state.lock().1 = end;
        Ok(())
    }
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

#[cfg(test)]
mod tests {
    // A failed unwrap is a failed test.
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::test_drive::{drive, mount};
    use kv::Durability;

    /// The reservation may wait for space, and a summary takes a number while commits wait for it.
    #[test]
    fn numbers_are_taken_while_the_next_run_is_reserved() {
        let store = mount(&drive());
        let kv = store.inner.kv().unwrap();
        let numbers = Numbers::new(7);
        let put = |batch: &Batch| Ok(kv.write(batch, Durability::Buffered)?);
        assert_eq!(numbers.take(put).unwrap(), 7);
        (0..NUMBER_RUN / 2).for_each(|_| _ = numbers.take(put).unwrap());
        let mut reserved = 0;
        let write = |batch: &Batch| {
            assert!(numbers.state.try_lock().is_some());
            reserved += 1;
            let last = numbers.take(put)?;
            assert_eq!(last, 8 + NUMBER_RUN / 2);
            put(batch)
        };
        numbers.reserve(write).unwrap();
        assert_eq!(reserved, 1);
        numbers.reserve(|_| panic!("enough are left")).unwrap();
        assert_eq!(numbers.take(put).unwrap(), 9 + NUMBER_RUN / 2);
    }
}
