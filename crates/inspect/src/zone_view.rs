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
    /// Bytes below its write pointer; of a conventional zone, those that are known to be used.
    pub written_bytes: u64,
    /// Bytes of files or objects; unknown for metadata and for objects of a store that does not run.
    pub live_bytes: Option<u64>,
    /// Written and no longer needed.
    pub dead_bytes: Option<u64>,
    /// Written and not in the journal yet.
    pub unnamed_bytes: u64,
}

/// Bytes that write pointers moved on by between two looks. A zone that was reset meanwhile counts
/// with what it has now.
pub fn advanced(before: &[ZoneView], now: &[ZoneView]) -> u64 {
    let moved = |(before, now): (&ZoneView, &ZoneView)| {
        if now.condition == ZoneCondition::NotWritePointer {
            return 0;
        }
        now.written_bytes
            .checked_sub(before.written_bytes)
            .unwrap_or(now.written_bytes)
    };
    before.iter().zip(now).map(moved).sum()
}

fn written(told: &ZoneDescriptor) -> u64 {
    if told.write_pointer_valid() {
        told.write_pointer
    } else {
        0
    }
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
    let owner = broken(told).unwrap_or(Owner::of_bluefs(zone.content, written(told)));
    let metadata = matches!(zone.content, ZoneContent::Superblock | ZoneContent::Journal);
    let live = (!metadata).then_some(zone.live_bytes);
    // A zone without a write pointer does not tell how much of it is dead.
    let tells = told.write_pointer_valid();
    let unnamed = if idle || metadata {
        0
    } else {
        zone.unnamed_bytes
    };
    let dead = live
        .filter(|_| tells)
        .map(|live| written(told).saturating_sub(live + unnamed));
    ZoneView {
        zone: told.id,
        owner,
        condition: told.condition,
        capacity: told.capacity,
        written_bytes: if tells {
            written(told)
        } else {
            zone.live_bytes
        },
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
        (None, Some(used)) => (Owner::Objects, Some(used.live_bytes.min(written))),
        (None, None) if told.kind == ZoneKind::Conventional => (Owner::Conventional, Some(0)),
        (None, None) if written == 0 => (Owner::Empty, Some(0)),
        // The server does not have it any more, or not yet: it moved on since the report.
        (None, None) if has_store => (Owner::Objects, objects.map(|_| written)),
        (None, None) => (Owner::GivenUp, Some(0)),
    };
    ZoneView {
        zone: told.id,
        owner,
        condition: told.condition,
        capacity: told.capacity,
        written_bytes: written,
        live_bytes: live,
        dead_bytes: live.map(|live| written - live),
        unnamed_bytes: 0,
    }
}
