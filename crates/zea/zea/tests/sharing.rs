//! Tenants share the zones of a drive: each gets the zones that it is guaranteed, and no more zones are active than the
//! drive allows.

use crate::support::{bytes, format, geometry};
use device::{MemoryDrive, ZonedDevice};
use std::sync::Arc;
use zea::{LogicalAddress, Sequence, Sharing};
use zone::{ZoneId, ZoneKind};
use zone_alloc::{Ladder, Tenant};

const CLEANER: usize = 0;
const DATA: usize = 1;

#[test]
fn data_leaves_the_cleaner_its_zone_and_active_ones_are_bounded() {
    let g = geometry(ZoneKind::SequentialWriteRequired);
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(g.clone()).unwrap());
    let ladder = Ladder([
        Tenant {
            active_quota: Some(1),
            ..Tenant::new(1, 0)
        },
        Tenant::new(0, 1),
    ]);
    let report = device.report(ZoneId(0), g.zone_count).unwrap();
    let sharing = Sharing::new(ladder, &g, &report);
    assert_eq!((sharing.free(), sharing.free_for(DATA)), (5, 4));
    let sequence = Sequence::default();
    let mut taken = Vec::new();
    while let Some(zone) = sharing.take(DATA) {
        let instance = format(&device, zone.0, 4, &sequence, 1).unwrap();
        instance.put(LogicalAddress(0), &bytes(1, 600)).unwrap();
        taken.push(instance);
    }
    // Four zones may be active, and one of them is reserved for the cleaner.
    assert_eq!(sharing.held_by(DATA), [1, 2, 3].map(ZoneId));
    taken[0].finish().unwrap();
    sharing.no_longer_active(taken[0].zone());
    let fourth = sharing.take(DATA).unwrap();
    assert_eq!(sharing.take(DATA), None);
    let cleaner = sharing.take(CLEANER).unwrap();
    assert_eq!((fourth, cleaner, sharing.free()), (ZoneId(4), ZoneId(5), 0));
    assert_eq!(sharing.take(CLEANER), None);
    taken.remove(0).reset().unwrap();
    sharing.give_back(ZoneId(1));
    // The last free zone is reserved for the cleaner, which already has its one zone. Once that is retired, the cleaner
    // gets this one.
    assert_eq!((sharing.take(DATA), sharing.take(CLEANER)), (None, None));
    sharing.retire(cleaner);
    assert_eq!(sharing.take(CLEANER), Some(ZoneId(1)));
}

#[test]
fn what_was_written_before_is_nobodys_until_it_is_claimed() {
    let g = geometry(ZoneKind::SequentialWriteRequired);
    let device: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(g.clone()).unwrap());
    format(&device, 2, 4, &Sequence::default(), 1).unwrap();
    let report = device.report(ZoneId(0), g.zone_count).unwrap();
    let sharing = Sharing::new(Ladder([Tenant::new(0, 0)]), &g, &report);
    assert_eq!((sharing.free(), sharing.held_by(0).len()), (4, 0));
    sharing.claim(0, ZoneId(2), true);
    assert_eq!(sharing.held_by(0), [ZoneId(2)]);
}
