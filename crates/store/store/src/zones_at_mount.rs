//! Takes stock of the zones with object data at mount: which are the store's, how far each is written, which have lost
//! data, and in which the streams go on.

use crate::Result;
use crate::format::key;
use crate::format::record::{decode_counters, decode_name};
use crate::format::summary::decode_places;
use crate::found::Found;
use crate::freelist::Freelist;
use crate::rows::corrupt;
use crate::stream::{Stream, finish, why_set_aside};
use crate::zone_failures::SetAside;
use device::ZonedDevice;
use kv::Kv;
use zone::{ZoneAddress, ZoneDescriptor, ZoneId};
use zone_alloc::{Owner, ZonePool};

/// Zones that can be appended to, with their write pointers in bytes.
pub(crate) type PartlyWritten = Vec<(ZoneId, u64)>;

/// Zones with object data, as found at mount.
#[derive(Default)]
pub(crate) struct ZonesFound {
    pub partly: PartlyWritten,
    /// Write pointers of zones with live data above them: objects have lost their bytes from here to the zone's end.
    pub lost: Vec<ZoneAddress>,
}

/// Fills the freelist from the database's records and claims the zones in `pool`.
pub(crate) fn load_freelist(
    kv: &Kv,
    report: &[ZoneDescriptor],
    pool: &ZonePool,
    freelist: &Freelist,
) -> Result<ZonesFound> {
    let mut found = ZonesFound::default();
    for row in kv.scan(&[key::FREELIST], Some(&[key::FREELIST + 1])) {
        let (key, value) = row?;
        let (Some(zone), Some((written, dead))) =
            (key::parse_freelist(&key), decode_counters(&value))
        else {
            return Err(corrupt(&key, "no freelist entry", value.len()));
        };
        // A zone without live bytes has been given up, whatever its condition is now.
        let Ok(live @ 1..) = u64::try_from(written.saturating_sub(dead)) else {
            continue;
        };
        let drive = report
            .get(zone.index())
            .ok_or_else(|| corrupt(&key, "a zone behind the end of the drive", zone.index()))?;
        if pool.claim(zone, Owner::Store).is_err() {
            // The drive has lost the zone's contents, and BlueFS, which knows of no objects, has taken the empty zone.
            let what = format!("zone {zone} was empty, and belongs to the metadata by now");
            tracing::error!(what, "a zone with object data is lost");
            freelist.adopt(zone, live, live);
            freelist.set_aside(zone, SetAside::Unreadable, what);
            // The rows of the lost data still exist: new data at the same addresses would be removed together with
            // them.
            pool.claim_next(zone, Some(Owner::Store));
            found.lost.push(ZoneAddress::new(zone, 0));
            continue;
        }
        let written = if drive.write_pointer_valid() {
            drive.write_pointer
        } else {
            written.unsigned_abs()
        };
        if live > written {
            tracing::error!(%zone, live, write_pointer = written, "live data above the write pointer");
        }
        freelist.adopt(zone, written.max(live), live);
        if let Some(why) = why_set_aside(drive.condition) {
            let what = format!("zone {zone} is {:?}", drive.condition);
            tracing::error!(%zone, ?why, "a zone with object data is set aside");
            freelist.set_aside_for_good(zone, why, what);
        }
        if drive.write_pointer_valid() && written < drive.capacity {
            // Data appended in front of live data would take the address of a lost extent, and be removed together with it.
            let why_not = match live_end(kv, pool, zone, written) {
                Ok(end) if end <= written => None,
                Ok(_) => {
                    found.lost.push(ZoneAddress::new(zone, written));
                    Some(format!(
                        "zone {zone} ends at byte {written}, in front of live data"
                    ))
                }
                Err(error) => Some(format!("whether zone {zone} has all of its data: {error}")),
            };
            if let Some(what) = why_not {
                tracing::error!(what, "a zone with object data is set aside");
                freelist.set_aside(zone, SetAside::Unreadable, what);
            }
            found.partly.push((zone, written));
        }
    }
    let block_size = u64::from(pool.geometry().block_size);
    for row in kv.scan(&[key::SUMMARIES], Some(&[key::SUMMARIES + 1])) {
        let (key, value) = row?;
        let (Some(zone), Some(places)) = (key::parse_summaries(&key), decode_places(&value)) else {
            return Err(corrupt(&key, "no places of summaries", value.len()));
        };
        let Some(drive) = report.get(zone.index()) else {
            return Err(corrupt(
                &key,
                "a zone behind the end of the drive",
                zone.index(),
            ));
        };
        let is_partly = drive.write_pointer_valid() && drive.write_pointer < drive.capacity;
        let written = if is_partly {
            drive.write_pointer
        } else {
            drive.capacity
        };
        if pool.owner(zone) != Some(Owner::Store) {
            // Nothing in the zone is live, but its summaries have rows of other zones, which are copied before it is
            // reset. If it has been reset already, it is empty or BlueFS's, and this row is a leftover.
            if written == 0 || pool.claim(zone, Owner::Store).is_err() {
                continue;
            }
            freelist.adopt(zone, written, 0);
            if let Some(why) = why_set_aside(drive.condition) {
                let what = format!("zone {zone} is {:?}", drive.condition);
                freelist.set_aside_for_good(zone, why, what);
            }
            if is_partly {
                found.partly.push((zone, written));
            }
        }
        let is_there =
            |block: u32, bytes: u32| u64::from(block) * block_size + u64::from(bytes) <= written;
        for (block, bytes) in places {
            if is_there(block, bytes) {
                freelist.add_summary(zone, pool.geometry().round_up(bytes.into()));
            }
        }
    }
    Ok(found)
}

/// End of the last live fragment of a zone that begins below `written`; `u64::MAX` if a fragment begins above it. Scans
/// downwards from `written`, so that few rows are read.
fn live_end(kv: &Kv, pool: &ZonePool, zone: ZoneId, written: u64) -> Result<u64> {
    let rows = |from, to| {
        let at = |offset| key::cleaning(ZoneAddress::new(zone, offset));
        kv.scan(&at(from), Some(&at(to)))
    };
    if rows(written, u64::MAX).next().transpose()?.is_some() {
        return Ok(u64::MAX);
    }
    let (mut window, mut to) = (64 << 10, written);
    let last = loop {
        let from = to.saturating_sub(window);
        let last = rows(from, to).last().transpose()?;
        if last.is_some() || from == 0 {
            break last;
        }
        (window, to) = (window * 4, from);
    };
    let Some((key, value)) = last else {
        return Ok(0);
    };
    let (Some(at), Some(name)) = (key::parse_cleaning(&key), decode_name(&value)) else {
        return Err(corrupt(&key, "no cleaning entry", value.len()));
    };
    let found = Found::look_up(kv, name)?;
    let fragments = found.iter().flat_map(|found| &found.blob().fragments);
    let mut here = fragments.filter(|fragment| fragment.at == Some(at));
    let length = here.next().map_or(1, |fragment| u64::from(fragment.length));
    Ok(at.offset.saturating_add(pool.geometry().round_up(length)))
}

/// Lets the streams go on in zones that were open: the emptiest is for data, the next for the cleaner. All others, and
/// those that are set aside, are finished, so that they hold no active resource.
pub(crate) fn resume(
    device: &dyn ZonedDevice,
    freelist: &Freelist,
    data: &Stream,
    moved: &Stream,
    mut partly: PartlyWritten,
) {
    partly.sort_unstable_by_key(|(zone, written)| (freelist.is_set_aside(*zone), *written, *zone));
    for (index, (zone, written)) in partly.into_iter().enumerate() {
        match index {
            0 | 1 if freelist.is_set_aside(zone) => finish(device, freelist, zone),
            0 => data.resume(zone, written),
            1 => moved.resume(zone, written),
            _ => finish(device, freelist, zone),
        }
    }
}

/// Counts zones as a mount for writing would find them, so that the reported space is the same: unclaimed zones are
/// dead, and the rest of a zone in which a stream would go on is free.
pub(crate) fn count_as_resumed(
    freelist: &Freelist,
    report: &[ZoneDescriptor],
    unclaimed: Vec<ZoneId>,
    mut partly: PartlyWritten,
) {
    for zone in unclaimed {
        let written = report.get(zone.index()).map_or(0, |z| z.write_pointer);
        freelist.adopt(zone, written, 0);
    }
    partly.retain(|(zone, _)| !freelist.is_set_aside(*zone));
    partly.sort_unstable_by_key(|(zone, written)| (*written, *zone));
    for (zone, _) in partly.into_iter().take(2) {
        freelist.open(zone);
    }
}

#[cfg(test)]
mod tests {
    // A failed unwrap is a failed test.
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::test_drive::{drive, mount, put, remove};
    use zone::ZoneCondition;

    /// BlueFS takes the empty zone as soon as the drive is mounted, and may give it back at any time.
    #[test]
    fn a_lost_zone_that_the_metadata_gives_back_is_the_stores() {
        let drive = drive();
        let store = mount(&drive);
        put(&store, "lost");
        let zone = store.zones()[0].zone;
        store.unmount().unwrap();
        drive.reset(zone).unwrap();
        // Makes the zone the first that the pool gives out.
        for free in drive.report(ZoneId(0), zone.0).unwrap() {
            if free.condition == ZoneCondition::Empty {
                let offline = ZoneCondition::Offline;
                drive.set_condition(free.id, offline).unwrap();
            }
        }
        let store = mount(&drive);
        let pool = &store.inner.pool;
        assert_eq!(pool.owner(zone), Some(Owner::BlueFs));
        pool.give_back(zone);
        assert_eq!(pool.owner(zone), Some(Owner::Store));
        // Once the lost object is removed, the zone is free like any other.
        remove(&store, "lost");
        while store.clean_one().unwrap() {}
        assert_eq!(pool.owner(zone), None);
    }
}
