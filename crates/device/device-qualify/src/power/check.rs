//! Compares a drive after a power cut with the data that a round had written and flushed.

use super::content;
use super::round::{Round, Step};
use device::ZonedDevice;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use zone::{ZoneAddress, ZoneCondition, ZoneDescriptor, ZoneError, ZoneId, ZoneResult};

/// Blocks of one read.
const READ_BLOCKS: u64 = 256;

/// The outcome of a check: flushed bytes that are there, lost or wrong.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Kept {
    /// Number of the last flush that was logged.
    pub flushed: u64,
    /// Whether the log says that the round did not end by a loss of power.
    pub ended_as_asked: bool,
    /// Bytes that were flushed and not erased since.
    pub flushed_bytes: u64,
    /// Of these, bytes above a write pointer, or in a zone that cannot be read.
    pub lost_bytes: u64,
    /// Of these, bytes below a write pointer that are not what was written.
    pub wrong_bytes: u64,
    /// Bytes written after the last logged flush that are there.
    pub unflushed_bytes: u64,
    /// Bytes below a write pointer that no flush covered and that differ from the written ones. A drive may do
    /// that; a reader needs checksums to notice it.
    pub unflushed_wrong_bytes: u64,
    /// Zones with lost or wrong bytes.
    pub faults: Vec<ZoneFault>,
}

/// A zone with lost or wrong bytes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ZoneFault {
    /// The zone.
    pub zone: ZoneId,
    /// A sentence about its lost or wrong bytes.
    pub what: String,
}

impl Kept {
    /// Whether all flushed data is there.
    pub fn is_safe(&self) -> bool {
        self.faults.is_empty()
    }
}

#[derive(Clone, Copy)]
struct Write {
    offset: u64,
    blocks: u64,
    number: u64,
}

/// The writes that a round made to a zone between two resets.
#[derive(Default)]
struct Filling {
    writes: Vec<Write>,
    bytes: u64,
    /// Of [`Self::bytes`], those that the last logged flush covers.
    flushed_bytes: u64,
}

/// By zone, the fillings that a power cut may have left: the one begun before the last logged flush, and later
/// ones.
type Fillings = BTreeMap<ZoneId, Vec<Filling>>;

/// Compares the drive with `round`, of which flush `flushed` was the last that was logged. `done` reports
/// progress in zones.
///
/// # Errors
/// An error of the drive that does not concern a single zone.
pub fn check(
    device: &dyn ZonedDevice,
    round: &Round,
    flushed: u64,
    done: &mut dyn FnMut(u64, u64),
) -> ZoneResult<Kept> {
    let fillings = expected(round, flushed);
    let mut kept = Kept {
        flushed,
        ..Kept::default()
    };
    let all = fillings.len() as u64;
    for (index, (zone, fillings)) in fillings.into_iter().enumerate() {
        check_zone(device, round, zone, &fillings, &mut kept)?;
        done(index as u64 + 1, all);
    }
    Ok(kept)
}

fn expected(round: &Round, flushed: u64) -> Fillings {
    let mut zones = Fillings::new();
    let last = flushed.saturating_add(round.lag());
    let mut is_covered = flushed > 0;
    for step in round.steps() {
        match step {
            Step::Reset(zone) => {
                let fillings = zones.entry(zone).or_default();
                if is_covered {
                    fillings.clear();
                }
                fillings.push(Filling::default());
            }
            Step::Write { at, blocks, number } => {
                let Some(filling) = zones.entry(at.zone).or_default().last_mut() else {
                    continue; // A zone is reset before it is written to.
                };
                filling.writes.push(Write {
                    offset: at.offset,
                    blocks,
                    number,
                });
                filling.bytes = at.offset + blocks * u64::from(round.block_bytes);
                if is_covered {
                    filling.flushed_bytes = filling.bytes;
                }
            }
            // Commands after the next flush were not sent before that flush was logged, unless the log lags.
            Step::Flush { number } if number > last => break,
            Step::Flush { number } => is_covered = number < flushed,
        }
    }
    zones
}

fn check_zone(
    device: &dyn ZonedDevice,
    round: &Round,
    zone: ZoneId,
    fillings: &[Filling],
    kept: &mut Kept,
) -> ZoneResult<()> {
    let reported = device.report_zone(zone)?;
    let written = written(&reported);
    let first = fillings.first();
    let due = first.map_or(0, |filling| filling.flushed_bytes);
    kept.flushed_bytes += due;
    let fault = |kept: &mut Kept, what| kept.faults.push(ZoneFault { zone, what });
    if reported.condition == ZoneCondition::Offline {
        if due > 0 {
            kept.lost_bytes += due;
            fault(kept, "the zone is offline".to_owned());
        }
        return Ok(());
    }
    // A reset that was sent but not flushed may have taken effect; then the zone holds a later filling.
    let mut best: Option<(u64, Found)> = None;
    for (index, filling) in fillings.iter().enumerate() {
        let found = compare(device, round, zone, filling, written)?;
        let is_later = index > 0;
        let missed = if is_later {
            0
        } else {
            due.saturating_sub(written) + found.wrong_flushed
        };
        let wrong = missed + found.wrong_unflushed;
        if best.as_ref().is_none_or(|(least, _)| wrong < *least) {
            best = Some((wrong, Found { is_later, ..found }));
        }
    }
    let Some((_, found)) = best else {
        return Ok(());
    };
    kept.unflushed_bytes += found.unflushed - found.wrong_unflushed;
    kept.unflushed_wrong_bytes += found.wrong_unflushed;
    if found.is_later {
        return Ok(());
    }
    let lost = due.saturating_sub(written);
    if lost > 0 {
        kept.lost_bytes += lost;
        fault(
            kept,
            format!("the write pointer is at byte {written}, and {due} bytes were flushed"),
        );
    }
    if let Some(at) = found.first_wrong {
        kept.wrong_bytes += found.wrong_flushed;
        let wrong = found.wrong_flushed;
        fault(
            kept,
            format!("{wrong} flushed bytes are not what was written, the first at byte {at}"),
        );
    }
    Ok(())
}

#[derive(Default)]
struct Found {
    is_later: bool,
    wrong_flushed: u64,
    first_wrong: Option<u64>,
    unflushed: u64,
    wrong_unflushed: u64,
}

/// Compares the blocks below the write pointer with a filling.
fn compare(
    device: &dyn ZonedDevice,
    round: &Round,
    zone: ZoneId,
    filling: &Filling,
    written: u64,
) -> ZoneResult<Found> {
    let block = u64::from(round.block_bytes);
    let mut found = Found {
        // Bytes below the write pointer that were never sent.
        wrong_unflushed: written.saturating_sub(filling.bytes),
        unflushed: written.saturating_sub(filling.flushed_bytes),
        ..Found::default()
    };
    for write in &filling.writes {
        let mut at = write.offset;
        let end = (write.offset + write.blocks * block).min(written);
        while at < end {
            let bytes = (end - at).min(READ_BLOCKS * block);
            let (mut is, mut should) = (vec![0; bytes as usize], vec![0; bytes as usize]);
            content::fill(round, write.number, ZoneAddress::new(zone, at), &mut should);
            let is_read = read(device, ZoneAddress::new(zone, at), &mut is)?;
            let pairs = is.chunks(block as usize).zip(should.chunks(block as usize));
            for (index, (is, should)) in pairs.enumerate() {
                if is_read && is == should {
                    continue;
                }
                let offset = at + index as u64 * block;
                if offset < filling.flushed_bytes {
                    found.wrong_flushed += block;
                    found.first_wrong.get_or_insert(offset);
                } else {
                    found.wrong_unflushed += block;
                }
            }
            at += bytes;
        }
    }
    Ok(found)
}

/// Reads a range of a zone; false if the medium cannot be read there.
fn read(device: &dyn ZonedDevice, at: ZoneAddress, bytes: &mut [u8]) -> ZoneResult<bool> {
    match device.read(device.geometry().absolute(at), bytes) {
        Ok(()) => Ok(true),
        Err(error @ ZoneError::PowerLost { .. }) => Err(error),
        Err(error) if error.is_caller_mistake() => Err(error),
        Err(_) => Ok(false),
    }
}

fn written(zone: &ZoneDescriptor) -> u64 {
    if zone.write_pointer_valid() {
        zone.write_pointer
    } else {
        zone.capacity
    }
}
