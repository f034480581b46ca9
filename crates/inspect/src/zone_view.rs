//! The state of one zone, combined from the drive's report, BlueFS and the store.

use crate::owner::Owner;
use bluefs::{ObservedZone, ZoneContent};
use runtime::HashMap;
use serde::Serialize;
use store::ZoneUse;
use zone::{ZoneCondition, ZoneDescriptor, ZoneId, ZoneKind};

/// The state of one zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct ZoneView {
    /// Zone number.
    pub zone: ZoneId,
    /// Owner and use of the zone.
    pub owner: Owner,
    /// Condition as the drive reports it.
    pub condition: ZoneCondition,
    /// Writable bytes.
    pub capacity: u64,
    /// Bytes below the write pointer; `None` without a valid one.
    pub written_bytes: Option<u64>,
    /// Bytes of files or objects; `None` for metadata, and for objects of a store that does not run.
    pub live_bytes: Option<u64>,
    /// Bytes that are written and no longer needed; `None` if either of the two above is.
    pub dead_bytes: Option<u64>,
    /// Bytes that are written and not in the journal yet.
    pub unnamed_bytes: u64,
}

impl ZoneView {
    /// The written bytes; without a write pointer, the live bytes.
    pub fn used_bytes(&self) -> Option<u64> {
        self.written_bytes.or(self.live_bytes)
    }
}

/// Bytes by which write pointers have advanced between two snapshots. A zone that was reset in between counts
/// with its present write pointer.
pub fn advanced(before: &[ZoneView], now: &[ZoneView]) -> u64 {
    let moved = |(before, now): (&ZoneView, &ZoneView)| {
        let Some(now) = now.written_bytes else {
            return 0;
        };
        // A zone whose write pointer was not valid before counts as unchanged.
        let before = before.written_bytes.unwrap_or(now);
        now.checked_sub(before).unwrap_or(now)
    };
    before.iter().zip(now).map(moved).sum()
}

fn written(told: &ZoneDescriptor) -> Option<u64> {
    told.write_pointer_valid().then_some(told.write_pointer)
}

fn broken(told: &ZoneDescriptor) -> Option<Owner> {
    match told.condition {
        ZoneCondition::ReadOnly => Some(Owner::ReadOnly),
        ZoneCondition::Offline => Some(Owner::Offline),
        _ => None,
    }
}

/// The state of a zone of BlueFS. `idle`: no process writes, so written bytes without a name in the journal are
/// dead.
pub(crate) fn of_bluefs(told: &ZoneDescriptor, zone: &ObservedZone, idle: bool) -> ZoneView {
    let written = written(told);
    let owner = Owner::of_bluefs(zone.content, written.unwrap_or(0));
    let owner = broken(told).unwrap_or(owner);
    let metadata = matches!(zone.content, ZoneContent::Superblock | ZoneContent::Journal);
    let live = (!metadata).then_some(zone.live_bytes);
    let unnamed = if idle || metadata {
        0
    } else {
        zone.unnamed_bytes
    };
    let dead = written
        .zip(live)
        .map(|(written, live)| written.saturating_sub(live + unnamed));
    ZoneView {
        zone: told.id,
        owner,
        condition: told.condition,
        capacity: told.capacity,
        written_bytes: written,
        live_bytes: live,
        dead_bytes: dead,
        unnamed_bytes: unnamed,
    }
}

/// The state of a zone that BlueFS does not claim.
pub(crate) fn of_others(
    told: &ZoneDescriptor,
    has_store: bool,
    objects: Option<&HashMap<ZoneId, ZoneUse>>,
) -> ZoneView {
    let written = written(told);
    let (owner, live) = match (broken(told), objects.and_then(|o| o.get(&told.id))) {
        (Some(owner), _) => (owner, None),
        (None, Some(used)) => {
            let most = written.unwrap_or(u64::MAX);
            (Owner::Objects, Some(used.live_bytes.min(most)))
        }
        (None, None) if told.kind == ZoneKind::Conventional => (Owner::Conventional, Some(0)),
        (None, None) if written == Some(0) => (Owner::Unused, Some(0)),
        // The server's answer does not list the zone: the store has gained or lost it since the report.
        (None, None) if has_store => (Owner::Objects, objects.and(written)),
        (None, None) => (Owner::GivenUp, Some(0)),
    };
    ZoneView {
        zone: told.id,
        owner,
        condition: told.condition,
        capacity: told.capacity,
        written_bytes: written,
        live_bytes: live,
        dead_bytes: written.zip(live).map(|(written, live)| written - live),
        unnamed_bytes: 0,
    }
}
