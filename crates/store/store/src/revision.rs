//! When objects were last changed by others than the programs that keep them: by a repair, an import, a restore.

use crate::Result;
use crate::format::key;
use crate::format::record::decode_number;
use kv::{Batch, Kv};

/// The number of the last such change, or 0.
pub(crate) fn revised(kv: &Kv) -> Result<u64> {
    let value = kv.get(key::SUPER_REVISED)?;
    Ok(value.and_then(|value| decode_number(&value)).unwrap_or(0))
}

/// Adds the record of such a change at `now` (Unix time in microseconds), which begins with this batch.
pub(crate) fn put_revised(kv: &Kv, now: u64, batch: &mut Batch) -> Result<()> {
    // The clock may have been set back.
    let next = revised(kv)?.saturating_add(1).max(now);
    batch.put(key::SUPER_REVISED, &next.to_le_bytes());
    Ok(())
}
