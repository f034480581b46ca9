//! Streams: where data is appended. A stream owns one open zone at a time and passes from a full
//! zone to the next; user data and data that the cleaner moves never share a zone.
//!
//! With zone append the drive gives the place and the stream's lock is held only to count bytes;
//! without it the lock is held over the write, which keeps the order (main document § 5.7.1).
//! A zone is pinned before the lock is let go, so that it is not cleaned before the cleaner knows of
//! what is being written to it.

use crate::Result;
use crate::freelist::{Freelist, SetAside};
use device::ZonedDevice;
use runtime::sync::Mutex;
use std::sync::Arc;
use zone::{ZoneAddress, ZoneCondition, ZoneError, ZoneId};
use zone_alloc::{Purpose, ZonePool};

/// How many zones in a row may fail under a write before the write fails.
const MAX_BAD_ZONES: u32 = 8;

#[derive(Clone, Copy, Debug)]
struct OpenZone {
    zone: ZoneId,
    /// Bytes given away so far.
    used: u64,
}

/// One stream of appended data.
pub(crate) struct Stream {
    device: Arc<dyn ZonedDevice>,
    pool: Arc<ZonePool>,
    freelist: Arc<Freelist>,
    purpose: Purpose,
    open: Mutex<Option<OpenZone>>,
}

/// Where a run of bytes came to lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    pub at: ZoneAddress,
    /// Bytes, whole blocks.
    pub length: u64,
}

/// Why nothing was appended.
pub(crate) enum AppendError {
    /// The stream needs a zone and the pool has none for it: clean, then try again.
    NeedsZone,
    Drive(ZoneError),
}

impl Stream {
    pub fn new(
        device: Arc<dyn ZonedDevice>,
        pool: Arc<ZonePool>,
        freelist: Arc<Freelist>,
        purpose: Purpose,
    ) -> Self {
        Self {
            device,
            pool,
            freelist,
            purpose,
            open: Mutex::new(None),
        }
    }

    /// Goes on in a zone that was open when the store was last used.
    pub fn resume(&self, zone: ZoneId, used: u64) {
        self.freelist.open(zone);
        *self.open.lock() = Some(OpenZone { zone, used });
    }

    /// Appends a first part of `data` (whole blocks), and says where it lies; the caller enters it in
    /// a [`crate::written::Hold`], which unpins the zone, and comes again with the rest.
    pub fn append(&self, data: &[u8]) -> Result<Placed, AppendError> {
        let mut bad_zones = 0;
        loop {
            match self.append_once(data) {
                Err(AppendError::Drive(error))
                    if bad_zones < MAX_BAD_ZONES && is_of_zone(&error) =>
                {
                    tracing::warn!(%error, "write failed; going on in another zone");
                    bad_zones += 1;
                }
                result => return result,
            }
        }
    }

    fn append_once(&self, data: &[u8]) -> Result<Placed, AppendError> {
        let geometry = self.device.geometry();
        let mut open = self.open.lock();
        let OpenZone { zone, used } = match *open {
            Some(open) => open,
            None => {
                let zone = self.pool.take(self.purpose).ok_or(AppendError::NeedsZone)?;
                self.freelist.open(zone);
                *open.insert(OpenZone { zone, used: 0 })
            }
        };
        let by_append = u64::from(geometry.max_append_bytes);
        let mut length = (data.len() as u64).min(geometry.capacity(zone) - used);
        if by_append > 0 {
            length = length.min(by_append);
        }
        let piece = &data[..length as usize];
        self.freelist.pin(zone, length);
        let used = used + length;
        *open = (used < geometry.capacity(zone)).then_some(OpenZone { zone, used });
        if open.is_none() {
            self.freelist.seal(zone);
        }
        let at = ZoneAddress::new(zone, used - length);
        // Without zone append the lock is what keeps writes in order.
        let outcome = if by_append > 0 {
            drop(open);
            self.device.append(zone, piece)
        } else {
            let at = geometry.absolute(at);
            let outcome = self.device.write(at, piece).map(|()| at);
            drop(open);
            outcome
        };
        match outcome.map(|at| geometry.address(at)) {
            // By its own account: a drive that answers another zone is not believed.
            Ok(Some(at)) if at.zone == zone => Ok(Placed { at, length }),
            Ok(_) => Err(AppendError::Drive(ZoneError::OutOfRange {
                command: zone::ZoneCommand::Append,
                at: geometry.start(zone),
                length,
            })),
            Err(error) => {
                self.leave(zone);
                // Too many open or active zones are no fault of this one.
                let limit = matches!(
                    error,
                    ZoneError::TooManyOpenZones { .. } | ZoneError::TooManyActiveZones { .. }
                );
                if is_of_zone(&error) && !limit {
                    self.freelist.failed(zone);
                    judge(&*self.device, &self.freelist, zone, &error);
                }
                self.freelist.seal(zone);
                self.freelist.unpin(zone);
                Err(AppendError::Drive(error))
            }
        }
    }

    /// Leaves a zone that failed, if it is the open one. What was committed in it stays.
    pub fn leave(&self, zone: ZoneId) {
        {
            let mut open = self.open.lock();
            if open.is_none_or(|open| open.zone != zone) {
                return;
            }
            *open = None;
        }
        self.freelist.seal(zone);
        // Frees the zone's active resource; a zone that does not write may not finish either.
        if let Err(error) = self.device.finish(zone) {
            tracing::warn!(%error, %zone, "a zone that failed cannot be finished");
        }
    }

    /// Gives the open zone to another stream that has none; false if there is none to give.
    pub fn hand_over(&self, to: &Self) -> bool {
        let Some(open) = self.open.lock().take() else {
            return false;
        };
        let mut theirs = to.open.lock();
        if theirs.is_none() {
            *theirs = Some(open);
        } else {
            drop(theirs);
            *self.open.lock() = Some(open);
        }
        true
    }

    /// Stops using the open zone, so that it can be cleaned.
    pub fn seal(&self) -> Result<()> {
        let Some(OpenZone { zone, .. }) = self.open.lock().take() else {
            return Ok(());
        };
        // Whether it can be finished or not, nothing is appended to it any more.
        self.freelist.seal(zone);
        match self.device.finish(zone) {
            Ok(()) => Ok(()),
            Err(error) if is_of_zone(&error) => {
                tracing::warn!(%error, %zone, "a zone cannot be finished");
                judge(&*self.device, &self.freelist, zone, &error);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Sets a zone aside that failed a command, if the drive says that it can only be read, or not even
/// that. After any other error the zone is tried again.
pub(crate) fn judge(
    device: &dyn ZonedDevice,
    freelist: &Freelist,
    zone: ZoneId,
    error: &ZoneError,
) {
    let why = match error {
        ZoneError::ReadOnly { .. } => Some(SetAside::ReadOnly),
        ZoneError::Offline { .. } => Some(SetAside::Unreadable),
        _ => match device.report_zone(zone) {
            Ok(found) => why_set_aside(found.condition),
            Err(_) => None,
        },
    };
    if let Some(why) = why
        && freelist.set_aside(zone, why, error.to_string())
    {
        tracing::error!(%error, %zone, ?why, "a zone is set aside");
    }
}

/// What a zone's condition means for the data in it.
pub(crate) const fn why_set_aside(condition: ZoneCondition) -> Option<SetAside> {
    match condition {
        ZoneCondition::ReadOnly => Some(SetAside::ReadOnly),
        ZoneCondition::Offline => Some(SetAside::Unreadable),
        _ => None,
    }
}

/// Whether another zone may fare better.
pub(crate) fn is_of_zone(error: &ZoneError) -> bool {
    !matches!(error, ZoneError::PowerLost { .. }) && !error.is_host_full()
}
