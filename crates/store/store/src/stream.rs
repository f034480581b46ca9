//! Streams: where data is appended. A stream owns one open zone at a time and goes on in another when that is full;
//! user data and data that the cleaner moves never share a zone.
//!
//! With zone append, the drive chooses the place and the stream's lock is held only to count bytes; without it, the
//! lock is held during the write, which keeps the order (main document § 5.7.1). A zone is pinned before the lock is
//! released, so that it is not cleaned while data is written to it that the cleaner does not know of yet.

use crate::Result;
use crate::freelist::Freelist;
use crate::zone_failures::SetAside;
use appender::{Left, Zones};
use device::ZonedDevice;
use runtime::sync::{Condvar, Mutex, MutexGuard};
use std::sync::Arc;
use zone::{ZoneAddress, ZoneCondition, ZoneError, ZoneId};
use zone_alloc::{Purpose, ZonePool};

#[derive(Clone, Copy, Debug)]
struct OpenZone {
    zone: ZoneId,
    /// Bytes allotted to writes so far, from the zone's start.
    used: u64,
}

#[derive(Default)]
struct State {
    open: Option<OpenZone>,
    /// Zone appends that have been allotted room and have not ended.
    under_way: u32,
}

/// One stream of appended data.
pub(crate) struct Stream {
    device: Arc<dyn ZonedDevice>,
    pool: Arc<ZonePool>,
    freelist: Arc<Freelist>,
    purpose: Purpose,
    state: Mutex<State>,
    /// Notified when no append is under way any more.
    idle: Condvar,
}

/// Where appended bytes lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    pub at: ZoneAddress,
    /// Bytes, whole blocks.
    pub length: u64,
}

/// Why an append failed.
pub(crate) enum AppendError {
    /// The stream needs a zone and the pool has none for it: clean, then try again.
    NeedsZone,
    Drive(ZoneError),
}

/// Room at the end of a zone allotted to one write; the zone is pinned. Dropped unfilled, it makes the stream leave the
/// zone, because no later write can follow a gap.
struct Room<'a> {
    stream: &'a Stream,
    at: ZoneAddress,
    length: u64,
    /// The stream's lock, without zone append: it keeps writes in order.
    order: Option<MutexGuard<'a, State>>,
    is_filled: bool,
    /// The write has failed and nothing of it was written.
    is_untouched: bool,
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        let (stream, zone) = (self.stream, self.at.zone);
        let mut order = self.order.take();
        if self.is_untouched && stream.take_back(order.as_mut(), self.at, self.length) {
            stream.freelist.unpin(zone);
        } else if !self.is_filled {
            if !stream.leave_under(order.take(), zone) && !stream.is_full(zone) {
                // The write would have filled it.
                finish(&*stream.device, &stream.freelist, zone);
            }
            stream.freelist.unpin(zone);
        }
        drop(order);
        if stream.appends() {
            let mut state = stream.state.lock();
            state.under_way -= 1;
            if state.under_way == 0 {
                stream.idle.notify_all();
            }
        }
    }
}

/// One append of `wanted` bytes to a stream.
struct Appending<'a> {
    stream: &'a Stream,
    wanted: u64,
}

impl<'a> Zones for Appending<'a> {
    type Open = Room<'a>;
    type Error = AppendError;
    const MAX_FAILED: u32 = 8;

    fn open(&mut self) -> Result<Room<'a>, AppendError> {
        self.stream.room(self.wanted)
    }

    fn leave(&mut self, mut room: Room<'a>, why: Left<'_>) -> Result<(), AppendError> {
        let (stream, zone) = (self.stream, room.at.zone);
        // Another zone would be refused, too, and each would be full without data from then on.
        if let Left::Failed(error) = why
            && room.is_untouched
        {
            return Err(AppendError::Drive(error.clone()));
        }
        let was_open = stream.leave_under(room.order.take(), zone);
        if let Left::Failed(error) = why {
            // An error about too many open or active zones is not this zone's fault, nor one of an append to a zone
            // that another thread has finished meanwhile.
            let was_finished = !was_open && stream.is_full(zone) && stream.appends();
            if !appender::is_of_limit(error) && !was_finished {
                stream.freelist.failed(zone);
                judge(&*stream.device, &stream.freelist, zone, error);
            }
        }
        Ok(())
    }

    fn drive_error(error: &AppendError) -> Option<&ZoneError> {
        match error {
            AppendError::NeedsZone => None,
            AppendError::Drive(error) => Some(error),
        }
    }
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
            state: Mutex::default(),
            idle: Condvar::new(),
        }
    }

    /// Appends from now on to `zone`, which was open when the store was last used, from byte `used` on.
    pub fn resume(&self, zone: ZoneId, used: u64) {
        self.freelist.open(zone);
        self.state.lock().open = Some(OpenZone { zone, used });
    }

    fn is_full(&self, zone: ZoneId) -> bool {
        let report = self.device.report_zone(zone);
        report.is_ok_and(|zone| zone.condition == ZoneCondition::Full)
    }

    /// Whether the drive supports zone append, and so chooses the place.
    fn appends(&self) -> bool {
        self.device.geometry().max_append_bytes > 0
    }

    /// Appends a first part of `data` (whole blocks) and returns its place. The caller enters it in a
    /// [`crate::written::Hold`], which unpins the zone, and calls again with the rest.
    pub fn append(&self, data: &[u8]) -> Result<Placed, AppendError> {
        let mut zones = Appending {
            stream: self,
            wanted: data.len() as u64,
        };
        appender::append(&mut zones, |_, room| {
            let placed = self.write(room, &data[..room.length as usize]);
            room.is_filled = placed.is_ok();
            let failed = placed.as_ref().err();
            room.is_untouched = failed.is_some_and(|error| {
                let is_refused = room.at.offset == 0 && appender::is_of_limit(error);
                is_refused || error.is_host_read_only()
            });
            placed.map(Some).map_err(AppendError::Drive)
        })
    }

    /// Allots up to `wanted` bytes at the end of the open zone, or in a new one. A new zone is opened only when all
    /// appends to the last one have ended: until then that one is active, and a stream may have only one active zone.
    fn room(&self, wanted: u64) -> Result<Room<'_>, AppendError> {
        let geometry = self.device.geometry();
        let mut state = self.state.lock();
        if let Some(OpenZone { zone, .. }) = state.open
            && self.freelist.is_set_aside(zone)
        {
            self.leave_under(Some(state), zone);
            state = self.state.lock();
        }
        while state.open.is_none() && state.under_way > 0 {
            self.idle.wait(&mut state);
        }
        let OpenZone { zone, used } = match state.open {
            Some(open) => open,
            None => {
                let zone = self.pool.take(self.purpose).ok_or(AppendError::NeedsZone)?;
                self.freelist.open(zone);
                *state.open.insert(OpenZone { zone, used: 0 })
            }
        };
        let mut length = wanted.min(geometry.capacity(zone) - used);
        if self.appends() {
            length = length.min(u64::from(geometry.max_append_bytes));
            state.under_way += 1;
        }
        self.freelist.pin(zone, length);
        let end = used + length;
        state.open = (end < geometry.capacity(zone)).then_some(OpenZone { zone, used: end });
        if state.open.is_none() {
            self.freelist.seal(zone);
        }
        Ok(Room {
            stream: self,
            at: ZoneAddress::new(zone, used),
            length,
            order: (!self.appends()).then_some(state),
            is_filled: false,
            is_untouched: false,
        })
    }

    /// Takes back the room of a write that wrote nothing, so that the next one follows the one before; false if room
    /// after it has been allotted already, or the zone has been left.
    fn take_back(
        &self,
        order: Option<&mut MutexGuard<'_, State>>,
        at: ZoneAddress,
        length: u64,
    ) -> bool {
        let (zone, has_lock) = (at.zone, order.is_some());
        let mut lock;
        let state = match order {
            Some(state) => &mut **state,
            None => {
                lock = self.state.lock();
                &mut *lock
            }
        };
        // If the lock was held since, a zone that is not open any more is one that this write would have filled.
        let end = at.offset + length;
        let is_last = state
            .open
            .map_or(has_lock, |open| (open.zone, open.used) == (zone, end));
        if is_last {
            let used = at.offset;
            state.open = Some(OpenZone { zone, used });
            self.freelist.take_back(zone, length);
        }
        is_last
    }

    fn write(&self, room: &Room<'_>, bytes: &[u8]) -> Result<Placed, ZoneError> {
        let geometry = self.device.geometry();
        let (zone, length) = (room.at.zone, room.length);
        let at = if room.order.is_some() {
            let at = geometry.absolute(room.at);
            self.device.write(at, bytes).map(|()| at)?
        } else {
            self.device.append(zone, bytes)?
        };
        match geometry.address(at) {
            // A drive that reports a place in another zone is not believed.
            Some(at) if at.zone == zone => Ok(Placed { at, length }),
            _ => Err(ZoneError::OutOfRange {
                command: zone::ZoneCommand::Append,
                at: geometry.start(zone),
                length,
            }),
        }
    }

    /// Stops using `zone`, which is set aside, if it is the open one and no other thread has the stream's lock, perhaps
    /// for a write that hangs; the next write leaves the zone then.
    pub fn leave(&self, zone: ZoneId) {
        if let Some(state) = self.state.try_lock() {
            self.leave_under(Some(state), zone);
        }
    }

    /// Stops using `zone`, if it is the open one, and finishes it. Committed data in it stays. Under the stream's lock if
    /// the caller has it: otherwise, the zone could be handed over to another stream before it is left. True if it was
    /// the open one.
    fn leave_under(&self, order: Option<MutexGuard<'_, State>>, zone: ZoneId) -> bool {
        let mut state = order.unwrap_or_else(|| self.state.lock());
        let was_open = state.open.take_if(|open| open.zone == zone).is_some();
        drop(state);
        if was_open {
            finish(&*self.device, &self.freelist, zone);
            // Only now: from here on, the zone may be reset and used by another stream.
            self.freelist.seal(zone);
        }
        was_open
    }

    /// Whether the stream can take data without a new zone.
    pub fn has_room(&self) -> bool {
        self.state.lock().open.is_some()
    }

    /// Gives the open zone to the stream `to`; if that has one already, both keep theirs. False if there is none to
    /// give.
    pub fn hand_over(&self, to: &Self) -> bool {
        // Under both locks: meanwhile neither stream opens another zone. No thread takes them the other way round.
        let mut ours = self.state.lock();
        // An append that fails leaves and seals the zone.
        while ours.under_way > 0 {
            self.idle.wait(&mut ours);
        }
        if ours.open.is_none() {
            return false;
        }
        let mut theirs = to.state.lock();
        if theirs.open.is_none() {
            theirs.open = ours.open.take();
        }
        true
    }

    /// Seals and finishes the open zone, so that it can be cleaned.
    pub fn seal(&self) -> Result<()> {
        let Some(OpenZone { zone, .. }) = self.state.lock().open.take() else {
            return Ok(());
        };
        let finished = self.device.finish(zone);
        if finished.is_err() {
            self.freelist.add_unfinished(zone);
        }
        // Whether it can be finished or not, nothing is appended to it any more. Only now: from here on, the zone may be
        // reset and used by another stream.
        self.freelist.seal(zone);
        match finished {
            Ok(()) => Ok(()),
            Err(error) if appender::is_of_zone(&error) => {
                tracing::warn!(%error, %zone, "a zone cannot be finished");
                judge(&*self.device, &self.freelist, zone, &error);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Finishes a zone that is left, which frees its active resource. What fails, the cleaner tries again.
pub(crate) fn finish(device: &dyn ZonedDevice, freelist: &Freelist, zone: ZoneId) {
    if let Err(error) = device.finish(zone) {
        tracing::warn!(%error, %zone, "a zone cannot be finished");
        freelist.add_unfinished(zone);
    }
}

/// After a failed command, sets the zone aside if the drive reports it as read-only or offline. After any other error
/// it is used again.
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
        && freelist.set_aside_for_good(zone, why, error.to_string())
    {
        tracing::error!(%error, %zone, ?why, "a zone is set aside");
    }
}

/// Why a zone in this condition is set aside, if it is.
pub(crate) const fn why_set_aside(condition: ZoneCondition) -> Option<SetAside> {
    match condition {
        ZoneCondition::ReadOnly => Some(SetAside::ReadOnly),
        ZoneCondition::Offline => Some(SetAside::Unreadable),
        _ => None,
    }
}

#[cfg(test)]
// A failed unwrap is a failed test.
#[allow(clippy::unwrap_used)]
mod tests;
