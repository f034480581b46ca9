//! Makes both copies the same again, before anything new is written: a power cut may have left one of them
//! shorter, and a zone may have gone back to what it held before.

use crate::Result;
use crate::format::log_record::{self, HEADER};
use crate::format::operation::Kind;
use crate::node::{Node, Piece};
use crate::shared::Shared;
use crate::state::State;
use std::collections::BTreeMap;
use zone::{ZoneAddress, ZoneError, ZoneId};

impl Shared {
    /// Brings the shorter copies of zones with files up to the longer ones, and those of records of logs in
    /// conventional zones, which no flush may have covered.
    pub fn level_copies(&self, state: &State) -> Result<()> {
        let g = self.device.geometry();
        let mut live_ends: BTreeMap<ZoneId, u64> = BTreeMap::new();
        for node in state.names.nodes.values() {
            let body = node.body.read();
            for piece in &body.pieces {
                let end = live_ends.entry(piece.at.zone).or_default();
                *end = (*end).max(g.round_up(piece.at.offset.saturating_add(piece.length)));
            }
        }
        for (zone, live_end) in live_ends {
            match self.device.catch_up(zone, live_end) {
                Ok(0) => {}
                Ok(bytes) => tracing::info!(%zone, bytes, "a copy of metadata was shorter"),
                Err(error @ ZoneError::PowerLost { .. }) => return Err(error.into()),
                Err(error) => tracing::warn!(%error, %zone, "a copy of metadata stays shorter"),
            }
        }
        for node in state.names.nodes.values().filter(|n| n.kind == Kind::Log) {
            let pieces = node.body.read().pieces.clone();
            for piece in pieces {
                let is_in_two = self.device.twin(piece.at.zone).is_some();
                if is_in_two && !self.is_sequential(piece.at.zone) {
                    self.level_record(node, &piece)?;
                }
            }
        }
        Ok(())
    }

    fn level_record(&self, node: &Node, piece: &Piece) -> Result<()> {
        let g = self.device.geometry();
        let at = ZoneAddress::new(piece.at.zone, piece.at.offset - HEADER as u64);
        let room = g.capacity(at.zone) - at.offset;
        let padded = g.round_up(piece.length + HEADER as u64).min(room) as usize;
        let (mut one, mut other) = (vec![0; padded], vec![0; padded]);
        let read = self.device.read(g.absolute(at), &mut one);
        let read_other = self.device.read_other(at, &mut other);
        let read_both = read.is_ok() && matches!(read_other, Some(Ok(())));
        if read_both && one == other {
            return Ok(());
        }
        let is_whole = |bytes: &[u8]| {
            let header = log_record::decode_header(bytes);
            header.is_some_and(|h| h.inode == node.inode && h.at == at && h.fits(bytes))
        };
        let whole = [one, other].into_iter().find(|bytes| is_whole(bytes));
        let written = whole.map(|bytes| self.device.write(g.absolute(at), &bytes));
        match written {
            Some(Err(error @ ZoneError::PowerLost { .. })) => Err(error.into()),
            Some(Err(error)) => {
                tracing::warn!(%error, %at, "a copy of a log record stays damaged");
                Ok(())
            }
            // In a log that is shorter than it seems: whoever reads it hears of it.
            None | Some(Ok(())) => Ok(()),
        }
    }
}
