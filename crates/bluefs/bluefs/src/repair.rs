//! Looks at both copies of everything and makes a damaged one anew, by moving what is live in its zone into
//! another pair.

use crate::format::crc32c;
use crate::format::log_record::HEADER;
use crate::format::operation::Kind;
use crate::mirror::Mirror;
use crate::move_log::{record_at, record_in_other};
use crate::node::{Node, Piece, matches};
use crate::shared::Shared;
use crate::tenants::Need;
use crate::{Error, Result};
use zone::{ZoneAddress, ZoneError};

impl Shared {
    /// See [`crate::BlueFs::repair_copies`].
    pub fn repair_copies(&self) -> Result<u32> {
        let known = self.device.damaged();
        let mut turned = 0;
        let nodes: Vec<_> = self.state.lock().names.nodes.values().cloned().collect();
        for node in nodes {
            let (pieces, _reading) = {
                let body = node.body.read();
                let zones = body.pieces.iter().map(|p| p.at.zone);
                let reading = self.gate.enter_in(zones);
                (body.pieces.clone(), reading)
            };
            for piece in &pieces {
                turned += u32::from(self.compare_copies(&node, piece)?);
            }
        }
        let damaged = self.device.damaged();
        let count = turned.max(damaged.difference(&known).count() as u32);
        if self.read_only {
            return Ok(count);
        }
        self.check_writable()?;
        // Nobody goes on in these.
        self.close_zones(&|zone| damaged.contains(&zone))?;
        let alone = self.moving.lock();
        for zone in damaged {
            let (is_held, before) = {
                let state = self.state.lock();
                let held = state.zones.holding().any(|(held, _)| held == zone);
                (held, state.zones.files_in(zone).count())
            };
            if is_held && before > 0 {
                match self.evacuate(zone, Need::Move.kept(), &|| false, &mut 0) {
                    Ok(()) => {}
                    // As long as others have all active zones; cleaning tries again.
                    Err(Error::NoSpace { .. }) => self.wake.call(),
                    Err(error) => return Err(error),
                }
            }
        }
        drop(alone);
        self.commit()?;
        Ok(count)
    }

    /// Takes note of a pair of which one copy is wrong. If that is the one that is read, the other is from now on, and
    /// the answer is true.
    fn compare_copies(&self, node: &Node, piece: &Piece) -> Result<bool> {
        let zone = piece.at.zone;
        if self.device.twin(zone).is_none() {
            return Ok(false);
        }
        let device = &*self.device;
        let is_right = match node.kind {
            Kind::Plain => matches(device, piece).map_err(Error::from),
            Kind::Log => record_at(device, node.inode, place(piece)).map(|found| found.is_some()),
        };
        if let Err(error @ Error::Drive(ZoneError::PowerLost { .. })) = is_right {
            return Err(error);
        }
        match (is_right, other_is_right(device, node, piece)) {
            (Ok(true), true) => {}
            (Ok(true), false) => device.set_damaged(zone),
            (_, true) => {
                device.turn_to_other(zone);
                return Ok(true);
            }
            // Nothing is known that could be written anew.
            (_, false) => tracing::error!(%zone, inode = node.inode, "both copies are damaged"),
        }
        Ok(false)
    }
}

/// Of the record that holds a piece of a log.
fn place(piece: &Piece) -> ZoneAddress {
    ZoneAddress::new(piece.at.zone, piece.at.offset - HEADER as u64)
}

/// Whether the copy of a piece that is not read is what its checksum says.
pub(crate) fn other_is_right(device: &dyn Mirror, node: &Node, piece: &Piece) -> bool {
    if device.twin(piece.at.zone).is_none() {
        return true;
    }
    if node.kind == Kind::Log {
        return matches!(
            record_in_other(device, node.inode, place(piece)),
            Ok(Some(_))
        );
    }
    let mut blocks = vec![0; device.geometry().round_up(piece.length) as usize];
    let read = device.read_other(piece.at, &mut blocks);
    let found = &blocks[..piece.length as usize];
    matches!(read, Some(Ok(()))) && (piece.checksum == 0 || crc32c(found) == piece.checksum)
}
