//! Replays the frames of an area.
//!
//! The last frames may have survived a power cut that lost the extents they name. So of the frames after the
//! last one known to be durable, as many are valid as give a file system whose extents have all reached the
//! drive. But a zone is reset only when the frame is durable that dropped its last live extent: if an extent is
//! gone because its zone was reset, that frame is valid, and extents that it names and that are missing are
//! damaged.

use crate::area::Said;
use crate::arrived::Arrivals;
use crate::error::{Error, Result};
use crate::file_map::FileMap;
use crate::format::frame::Frame;
use crate::format::operation::{Operation, Piece};
use device::ZonedDevice;
use std::collections::BTreeSet;
use zone::{Geometry, ZoneAddress, ZoneId};

/// The file system as of the last valid frame.
#[derive(Debug)]
pub(crate) struct Replayed {
    pub last: Frame,
    pub map: FileMap,
    /// Number of frames after it, which name extents that have not reached the drive.
    pub left_out: usize,
    /// An extent in the map that was durable and is gone because its zone was reset.
    pub reset: Option<ZoneAddress>,
}

impl Replayed {
    /// Replays the complete frames of the area at `at`, the checkpoint first; file extents must be in `zones`.
    pub fn of(
        device: &dyn ZonedDevice,
        frames: Vec<Said>,
        at: ZoneAddress,
        zones: &[ZoneId],
    ) -> Result<Self> {
        let durable = frames.iter().map(|(frame, _)| frame.durable).max();
        let is_durable = |(frame, _): &Said| Some(frame.number) <= durable;
        let (known, on_the_way): (Vec<_>, Vec<_>) = frames.into_iter().partition(is_durable);
        let last = known.last().ok_or(Error::NotFormatted)?.0;
        let mut map = FileMap::default();
        for said in known {
            replay(&mut map, said, at)?;
        }
        lie_in(&map, zones, device.geometry())?;
        let mut arrivals = Arrivals::new(device);
        let (proven, reset) = proven(&mut arrivals, &map, &on_the_way, at)?;
        // Data that the last frame drops may be gone already. So all frames are tried together first, then all
        // but the last.
        for counting in (proven.max(1)..=on_the_way.len()).rev() {
            let counted = &on_the_way[..counting];
            let mut then = map.clone();
            for said in counted {
                replay(&mut then, said.clone(), at)?;
            }
            lie_in(&then, zones, device.geometry())?;
            let named = named(counted);
            let mut all = true;
            for (inode, piece) in then.pieces() {
                all = all && (!named.contains(&piece.at) || arrivals.has(inode, piece)?);
            }
            if all || counting == proven {
                return Ok(Self {
                    last: counted.last().map_or(last, |(frame, _)| *frame),
                    map: then,
                    left_out: on_the_way.len() - counting,
                    reset,
                });
            }
        }
        Ok(Self {
            last,
            map,
            left_out: on_the_way.len(),
            reset,
        })
    }
}

/// The number of the frames `on_the_way` that must have been durable because zones were reset for them.
///
/// Also returns an extent that is gone by a reset although the state after all of these frames needs it. `map` is as
/// of the last frame known to be durable.
fn proven(
    arrivals: &mut Arrivals<'_>,
    map: &FileMap,
    on_the_way: &[Said],
    at: ZoneAddress,
) -> Result<(usize, Option<ZoneAddress>)> {
    let mut gone = BTreeSet::new();
    for (_, piece) in map.pieces() {
        if arrivals.is_reset(piece)? {
            gone.insert(piece.at);
        }
    }
    if gone.is_empty() {
        return Ok((0, None));
    }
    let (mut then, mut has) = (map.clone(), Vec::new());
    let of = |map: &FileMap| -> BTreeSet<ZoneAddress> {
        let pieces = map.pieces().map(|(_, piece)| piece.at);
        pieces.filter(|at| gone.contains(at)).collect()
    };
    for said in on_the_way {
        has.push(of(&then));
        replay(&mut then, said.clone(), at)?;
    }
    let still = of(&then);
    let last = has.iter().rposition(|has| !has.is_subset(&still));
    Ok((last.map_or(0, |last| last + 1), still.first().copied()))
}

/// Applies the operations of a frame of the area at `at`.
fn replay(map: &mut FileMap, (frame, operations): Said, at: ZoneAddress) -> Result<()> {
    for operation in operations {
        map.apply(operation).map_err(|_| Error::Corrupt {
            at,
            what: "operations that do not follow from each other, epoch",
            expected: frame.epoch,
            found: frame.number,
        })?;
    }
    Ok(())
}

/// The addresses of the pieces that frames name.
fn named(frames: &[Said]) -> BTreeSet<ZoneAddress> {
    let operations = frames.iter().flat_map(|(_, operations)| operations);
    let pieces = operations.flat_map(|operation| match operation {
        Operation::Append { piece, .. } => std::slice::from_ref(piece),
        Operation::Move { to, .. } => to,
        _ => &[],
    });
    pieces.map(|piece| piece.at).collect()
}

/// Checks that all pieces have possible addresses.
fn lie_in(map: &FileMap, zones: &[ZoneId], g: &Geometry) -> Result<()> {
    map.pieces()
        .try_for_each(|(_, piece)| lies_in(piece, zones, g))
}

/// Checks that a piece has a possible address.
fn lies_in(piece: &Piece, zones: &[ZoneId], g: &Geometry) -> Result<()> {
    let end = piece.at.offset.checked_add(piece.stored);
    let is_possible = zones.binary_search(&piece.at.zone).is_ok()
        && end.is_some_and(|end| end <= g.zone_capacity)
        && piece.length <= piece.stored
        && piece.at.offset.is_multiple_of(u64::from(g.block_size));
    match is_possible {
        true => Ok(()),
        false => Err(Error::Corrupt {
            at: piece.at,
            what: "a piece that lies nowhere, bytes",
            expected: g.zone_capacity,
            found: piece.stored,
        }),
    }
}
