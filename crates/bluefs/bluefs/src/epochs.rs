//! Which epoch of the journal counts, if superblocks are damaged.

use crate::format::superblock::Superblock;
use crate::journal::Journal;
use crate::{Error, Result};
use device::ZonedDevice;
use zone::ZoneKind;

/// The newest superblock, made up where those behind `found` were durable and are damaged; the error says
/// so then.
pub(crate) fn newest(
    device: &dyn ZonedDevice,
    found: Superblock,
) -> Result<(Superblock, Option<Error>)> {
    let mut newest = found;
    while let Some(next) = next_epoch(device, &newest)? {
        newest = Superblock {
            journal_epoch: next.epoch,
            journal_zone: newest.spare_zone,
            journal_frames: 0,
            spare_zone: newest.journal_zone,
            ..newest.next()
        };
    }
    let damaged = Error::SuperblocksDamaged {
        generation: found.generation,
        epoch: found.journal_epoch,
        lost: newest.journal_epoch,
    };
    let is_damaged = newest.journal_epoch != found.journal_epoch;
    Ok((newest, is_damaged.then_some(damaged)))
}

/// The journal behind that of `superblock`, if its superblock was durable. It begins in the spare zone. Its
/// frames say so, and so does it that the journal in front of it was reset.
fn next_epoch(device: &dyn ZonedDevice, superblock: &Superblock) -> Result<Option<Journal>> {
    let epoch = superblock.journal_epoch.wrapping_add(1);
    let next = Journal::replay(device, epoch, superblock.spare_zone, &mut |_, _| true);
    let Some(next) = next.ok().filter(|next| next.next_frame > 0) else {
        return Ok(None);
    };
    let before = device.report_zone(superblock.journal_zone)?;
    let is_reset = before.kind != ZoneKind::Conventional
        && before.write_pointer_valid()
        && before.write_pointer == 0;
    Ok(Some(next).filter(|next| next.durable > 0 || is_reset))
}
