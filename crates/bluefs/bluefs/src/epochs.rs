//! Finds the epoch of the journal that counts if superblocks are damaged.

use crate::Error;
use crate::format::superblock::Superblock;
use crate::journal::{Journal, first_header};
use crate::mirror::Mirror;
use zone::{ZoneId, ZoneKind};

/// Most superblocks that follow each other in a ring, so most epochs that can be missing.
const EPOCHS_AT_MOST: u64 = 1024;

/// The superblock that counts: `found`, or one made up in place of later ones that were durable and are damaged; the
/// error then reports that.
///
/// Epochs alternate between two zones, and each superblock names both.
pub(crate) fn newest(device: &dyn Mirror, found: Superblock) -> (Superblock, Option<Error>) {
    let zones = [found.journal_zone, found.spare_zone];
    for (zone, twin) in zones
        .into_iter()
        .zip([found.journal_twin, found.spare_twin])
    {
        if let Some(twin) = twin {
            device.pair(zone, twin);
        }
    }
    let later = [zones, [zones[1], zones[0]]]
        .into_iter()
        .filter_map(|[zone, other]| {
            later_epoch(device, found.journal_epoch, zone, other).map(|epoch| (epoch, zone, other))
        });
    let Some((lost, journal_zone, spare_zone)) = later.max() else {
        return (found, None);
    };
    let damaged = Error::SuperblocksDamaged {
        generation: found.generation,
        epoch: found.journal_epoch,
        lost,
    };
    let newest = Superblock {
        journal_epoch: lost,
        journal_zone,
        journal_frames: 0,
        spare_zone,
        journal_twin: device.twin(journal_zone),
        spare_twin: device.twin(spare_zone),
        ..found.next()
    };
    (newest, Some(damaged))
}

/// The epoch after `epoch` whose journal begins in `zone`, if its superblock was durable. That is so if its frames
/// record durable ones, or if the journal before it, in the `other` zone, has been reset.
fn later_epoch(device: &dyn Mirror, epoch: u64, zone: ZoneId, other: ZoneId) -> Option<u64> {
    let later = first_header(device, zone)?.place.epoch;
    // Conventional zones may hold frames of an earlier file system, whose epochs are in another range.
    if !(1..=EPOCHS_AT_MOST).contains(&later.wrapping_sub(epoch)) {
        return None;
    }
    let journal = Journal::replay(device, later, zone, &mut |_, _| true).ok()?;
    let is_reset = |zone: ZoneId| {
        let report = device.report_zone(zone);
        report.is_ok_and(|zone| {
            zone.kind != ZoneKind::Conventional
                && zone.write_pointer_valid()
                && zone.write_pointer == 0
        })
    };
    let was_durable = journal.durable > 0 || (journal.next_frame > 0 && is_reset(other));
    was_durable.then_some(later)
}
