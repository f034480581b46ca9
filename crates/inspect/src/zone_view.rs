//! One zone: what the drive, BlueFS and the store say of it.

use crate::owner::Owner;
use bluefs::{ObservedZone, ZoneContent};
use runtime::HashMap;
use serde::Serialize;
use store::ZoneUse;
use zone::{ZoneCondition, ZoneDescriptor, ZoneId, ZoneKind};

/// One zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct ZoneView {
    /// Its number.
    pub zone: ZoneId,
    /// Who has it.
    pub owner: Owner,
    /// Its condition, as the drive says.
    pub condition: ZoneCondition,
    /// Bytes that can be written to it.
    pub capacity: u64,
    /// Bytes below its write pointer; unknown of a zone without one.
    pub written_bytes: Option<u64>,
    /// Bytes of files or objects; unknown for metadata and for objects of a store that does not run.
    pub live_bytes: Option<u64>,
    /// Written and no longer needed; unknown where either of the two above is.
    pub dead_bytes: Option<u64>,
    /// Written and not in the journal yet.
    pub unnamed_bytes: u64,
}

impl ZoneView {
    /// Bytes that are in use at least: those written, or what is live where no write pointer tells.
    pub fn used_bytes(&self) -> Option<u64> {
        self.written_bytes.or(self.live_bytes)
    }
}

/// Bytes that write pointers moved on by between two looks. A zone that was reset meanwhile counts
/// with what it has now.
pub fn advanced(before: &[ZoneView], now: &[ZoneView]) -> u64 {
    let moved = |(before, now): (&ZoneView, &ZoneView)| {
        let Some(now) = now.written_bytes else {
            return 0;
        };
        // A zone that has become readable again has moved by nothing.
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

/// A zone of BlueFS. `idle`: nobody writes, so that what has no name is dead.
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

/// A zone that BlueFS does not claim.
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
        // The server does not have it any more, or not yet: it moved on since the report.
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
