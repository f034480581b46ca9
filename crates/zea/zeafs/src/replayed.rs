//! What the frames of an area say.
//!
//! The last of them may have outlived a power cut that has taken what they name. So of those that no later one calls durable,
//! as many count as leave a file system whose extents have arrived. But a zone is reset only when the frame is durable by which
//! the last of it died: where an extent is gone with a reset of its zone, that frame counts, and what it names and is not there has
//! been damaged.

use crate::area::Said;
use crate::arrived::Arrivals;
use crate::error::{Error, Result};
use crate::file_map::FileMap;
use crate::format::frame::Frame;
use crate::format::operation::{Operation, Piece};
use device::ZonedDevice;
use std::collections::BTreeSet;
use zone::{Geometry, ZoneAddress, ZoneId};

/// The file system as of the last frame that counts.
#[derive(Debug)]
pub(crate) struct Replayed {
    pub last: Frame,
    pub map: FileMap,
    /// Frames behind that one, which name what has not arrived.
    pub left_out: usize,
    /// An extent in the map that was durable, and is gone with a reset of its zone.
    pub reset: Option<ZoneAddress>,
}

impl Replayed {
    /// Of the frames that are whole, the checkpoint first, in the area at `at`; files may lie in `zones`.
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
        let mut arrivals = Arrivals::new(device);
        let (proven, reset) = proven(&mut arrivals, &map, &on_the_way, at)?;
        // What is dead by the last one may be gone since: so all of them together, then all but that one.
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
        lie_in(&map, zones, device.geometry())?;
        Ok(Self {
            last,
            map,
            left_out: on_the_way.len(),
            reset,
        })
    }
}

/// How many of the frames `on_the_way` have been durable, as zones tell that were reset for them; and an extent that is gone so
/// although all of them have it. `map` is as of the last frame that is known to be durable.
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

/// Carries out what a frame of the area at `at` says.
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

/// Where the pieces lie that frames name.
fn named(frames: &[Said]) -> BTreeSet<ZoneAddress> {
    let operations = frames.iter().flat_map(|(_, operations)| operations);
    let pieces = operations.flat_map(|operation| match operation {
        Operation::Append { piece, .. } => std::slice::from_ref(piece),
        Operation::Move { to, .. } => to,
        _ => &[],
    });
    pieces.map(|piece| piece.at).collect()
}

/// Whether all pieces can lie where they are said to.
fn lie_in(map: &FileMap, zones: &[ZoneId], g: &Geometry) -> Result<()> {
    map.pieces()
        .try_for_each(|(_, piece)| lies_in(piece, zones, g))
}

/// Whether a piece can lie where it is said to.
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
