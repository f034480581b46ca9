//! Appends to a sequence of zones, and finishes and resets zones.
//!
//! [`append`] moves on to another zone when one is full or when a write to it fails. The implementation of
//! [`Zones`] chooses the zones and decides what happens to one that is left, so this crate works with a table
//! of zones as well as with a pool.

mod flusher;
mod retries;
mod unfinished;

pub use flusher::Flusher;
pub use retries::{IN_NEED, Retries};
pub use unfinished::Unfinished;

use device::ZonedDevice;
use std::borrow::Cow;
use zone::{ZoneError, ZoneId, ZoneResult};

/// Why nothing more is appended to a zone.
#[derive(Debug)]
pub enum Left<'a> {
    /// The zone has no room for the next write.
    Full,
    /// A write to the zone failed. The data already written to it stays.
    Failed(&'a ZoneError),
}

/// The source of the zones that [`append`] writes to.
pub trait Zones {
    /// An open zone, or a run of bytes at its end. Dropping it gives back what the write did not use.
    type Open;
    /// The owner's error type, which includes errors of the drive.
    type Error;
    /// Number of zones that may fail under one write before the write fails.
    const MAX_FAILED: u32;

    /// Returns the zone that is open, or opens another one.
    fn open(&mut self) -> Result<Self::Open, Self::Error>;

    /// Closes `open` to further appends: the next [`Self::open`] returns another zone.
    fn leave(&mut self, open: Self::Open, why: Left<'_>) -> Result<(), Self::Error>;

    /// The drive's error that caused `error`, if it comes from a write.
    fn drive_error(error: &Self::Error) -> Option<&ZoneError>;
}

/// Writes at the end of an open zone with `write`, and goes on in another zone when one is full or fails.
///
/// `write` returns `None` for a zone without room. Errors that would occur in every zone are returned at once, and
/// the zone is not left.
pub fn append<Z: Zones, T>(
    zones: &mut Z,
    mut write: impl FnMut(&mut Z, &mut Z::Open) -> Result<Option<T>, Z::Error>,
) -> Result<T, Z::Error> {
    let mut failed = 0;
    loop {
        let mut open = zones.open()?;
        let error = match write(zones, &mut open) {
            Ok(Some(done)) => return Ok(done),
            Ok(None) => {
                zones.leave(open, Left::Full)?;
                continue;
            }
            Err(error) => error,
        };
        let Some(cause) = Z::drive_error(&error).filter(|error| is_of_zone(error)) else {
            return Err(error);
        };
        zones.leave(open, Left::Failed(cause))?;
        if failed == Z::MAX_FAILED {
            return Err(error);
        }
        tracing::warn!(error = %cause, "a write failed; going on in another zone");
        failed += 1;
    }
}

/// Whether an error is one of a single zone, so that the same write may succeed in another zone.
pub fn is_of_zone(error: &ZoneError) -> bool {
    let is_of_all = matches!(error, ZoneError::PowerLost { .. });
    !is_of_all && !error.is_host_full() && !error.is_host_read_only()
}

/// Whether the drive's limit of open or active zones was reached, which is no fault of the zone.
pub const fn is_of_limit(error: &ZoneError) -> bool {
    matches!(
        error,
        ZoneError::TooManyActiveZones { .. } | ZoneError::TooManyOpenZones { .. }
    )
}

/// `bytes` with zeros up to a whole block.
pub fn padded(bytes: &[u8], block_size: u32) -> Cow<'_, [u8]> {
    let length = bytes.len().next_multiple_of(block_size as usize);
    if length == bytes.len() {
        return Cow::Borrowed(bytes);
    }
    let mut blocks = Vec::with_capacity(length);
    blocks.extend_from_slice(bytes);
    blocks.resize(length, 0);
    Cow::Owned(blocks)
}

/// Finishes a zone that is left, which frees its active resource. A failure is only logged: a zone whose write
/// failed may not finish either. [`Unfinished`] has those that are tried again.
pub fn finish(device: &dyn ZonedDevice, zone: ZoneId) {
    if let Err(error) = device.finish(zone) {
        // `zone` may stand for a pair of zones; the error names the one that failed.
        tracing::warn!(%error, "a zone cannot be finished");
    }
}

/// The outcome of [`reset_or_retire`].
#[derive(Default, Debug)]
pub struct Resets {
    /// Zones that were reset. They can be written to after the next flush.
    pub empty: Vec<ZoneId>,
    /// Zones whose reset failed.
    pub broken: Vec<ZoneId>,
}

/// Calls `reset` for each of `zones`, which may find a zone empty already.
///
/// # Errors
/// Loss of power, after which the state of none of the zones is known.
pub fn reset_or_retire(
    zones: &[ZoneId],
    reset: impl Fn(ZoneId) -> ZoneResult<()>,
) -> ZoneResult<Resets> {
    let mut resets = Resets::default();
    for zone in zones {
        match reset(*zone) {
            Ok(()) => resets.empty.push(*zone),
            Err(error @ ZoneError::PowerLost { .. }) => return Err(error),
            Err(error) => {
                // `zone` may stand for a pair of zones; the error names the one that failed.
                tracing::warn!(%error, "a zone cannot be reset");
                resets.broken.push(*zone);
            }
        }
    }
    Ok(resets)
}

/// Resets a sequential zone unless it is empty; returns whether a reset was issued.
pub fn reset_if_written(device: &dyn ZonedDevice, zone: ZoneId) -> ZoneResult<bool> {
    let report = device.report_zone(zone)?;
    let is_written = !report.write_pointer_valid() || report.write_pointer > 0;
    if is_written {
        device.reset(zone)?;
    }
    Ok(is_written)
}
