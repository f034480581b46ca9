//! The numbers of maps and shared blobs.

use crate::format::key;
use crate::{Error, Result};
use kv::{Batch, Durability, Kv};
use runtime::sync::Mutex;

/// Numbers are set aside in runs of so many, so that a commit need not write the counter.
const NUMBER_RUN: u64 = 1 << 16;

/// The numbers of maps and shared blobs; never used twice.
pub(crate) struct Numbers {
    /// The next one, and the end of the run that is set aside on disk.
    state: Mutex<(u64, u64)>,
}

impl Numbers {
    /// Starts behind everything that was ever set aside.
    pub fn new(next: u64) -> Self {
        Self {
            state: Mutex::new((next, next)),
        }
    }

    /// A new number. `kv` remembers the run; the record need not be synced, for it is ahead in
    /// the log of any batch that uses the numbers.
    pub fn take(&self, kv: &Kv) -> Result<u64> {
        let mut state = self.state.lock();
        let number = state.0;
        let next = next_number(number, u64::MAX)?;
        if number == state.1 {
            let end = number.saturating_add(NUMBER_RUN);
            let mut batch = Batch::default();
            batch.put(key::SUPER_NEXT_NUMBER, &end.to_le_bytes());
            kv.write(&batch, Durability::Buffered)?;
            state.1 = end;
        }
        state.0 = next;
        Ok(number)
    }
}

/// The number behind `number`, of `highest` at most. Only a damaged record brings anybody there.
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
