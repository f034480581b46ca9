//! Appends to zones one behind the other: what finds no room goes on in the next zone, and what fails in
//! one is tried in another. Which zones these are, and what becomes of one that is left, is the owner's
//! business ([`Zones`]); so it does not matter here whether a table of zones stands behind it or a pool.

mod flusher;
mod retries;

pub use flusher::Flusher;
pub use retries::{IN_NEED, Retries};

use device::ZonedDevice;
use std::borrow::Cow;
use zone::{ZoneError, ZoneId, ZoneResult};

/// Why a zone is left.
#[derive(Debug)]
pub enum Left<'a> {
    /// It has no room for what comes next.
    Full,
    /// A write to it failed. What is in it stays.
    Failed(&'a ZoneError),
}

/// Where zones to append to come from.
pub trait Zones {
    /// An open zone, or a run of bytes at its end. Dropping it gives back what the write did not use.
    type Open;
    /// What the owner answers; errors of the drive are among them.
    type Error;
    /// So many zones may fail under one write before that fails.
    const MAX_FAILED: u32;

    /// The zone that is open, or another one.
    fn open(&mut self) -> Result<Self::Open, Self::Error>;

    /// Nothing more is appended to a zone: the next [`Self::open`] answers another one.
    fn leave(&mut self, open: Self::Open, why: Left<'_>) -> Result<(), Self::Error>;

    /// The drive's error behind one of a write.
    fn drive_error(error: &Self::Error) -> Option<&ZoneError>;
}

/// Lets `write` write at the end of a zone; it answers `None` for one without room. Errors that
/// another zone would meet too are answered at once, and no zone is left for them.
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

/// Whether what failed in one zone may succeed in another.
pub fn is_of_zone(error: &ZoneError) -> bool {
    !matches!(error, ZoneError::PowerLost { .. }) && !error.is_host_full()
}

/// Whether as many zones are open or active as the drive allows, which is no fault of the zone.
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

/// Gives back the active resource of a zone that is left. One that failed may not finish either.
pub fn finish(device: &dyn ZonedDevice, zone: ZoneId) {
    if let Err(error) = device.finish(zone) {
        // Of a pair of zones the error says which.
        tracing::warn!(%error, "a zone cannot be finished");
    }
}

/// What became of zones that were to be reset.
#[derive(Default, Debug)]
pub struct Resets {
    /// Can be written to behind the next flush.
    pub empty: Vec<ZoneId>,
    /// Their resets failed.
    pub broken: Vec<ZoneId>,
}

/// Resets each of `zones` by `reset`, which may find that there is nothing to do. Without power nothing
/// is known of any.
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
                // Of a pair of zones the error says which.
                tracing::warn!(%error, "a zone cannot be reset");
                resets.broken.push(*zone);
            }
        }
    }
    Ok(resets)
}

/// Resets a sequential zone unless nothing is written to it; true if that took a command.
pub fn reset_if_written(device: &dyn ZonedDevice, zone: ZoneId) -> ZoneResult<bool> {
    let report = device.report_zone(zone)?;
    let is_written = !report.write_pointer_valid() || report.write_pointer > 0;
    if is_written {
        device.reset(zone)?;
    }
    Ok(is_written)
}
