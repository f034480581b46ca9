//! Makes both copies equal before anything is written: a power cut may have left one of them shorter, and a zone may
//! have reverted to its earlier content.

use crate::Result;
use crate::format::log_record::HEADER;
use crate::format::operation::Kind;
use crate::move_log::{record_at, record_in_copy};
use crate::node::{Node, Piece};
use crate::shared::Shared;
use crate::state::State;
use std::collections::BTreeMap;
use zone::{ZoneAddress, ZoneError, ZoneId};

impl Shared {
    /// Completes the shorter copies of zones with files, and copies log records in conventional zones that differ,
    /// because no flush may have covered them. Returns the number of zones and records repaired.
    pub fn level_copies(&self, state: &State) -> Result<u64> {
        let mut levelled = 0;
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
                Ok(bytes) => {
                    levelled += 1;
                    tracing::info!(%zone, bytes, "a copy of metadata was shorter");
                }
                Err(error @ ZoneError::PowerLost { .. }) => return Err(error.into()),
                Err(error) => {
                    tracing::warn!(%error, %zone, "a copy of metadata stays shorter");
                    self.device.set_damaged(zone);
                }
            }
        }
        for node in state.names.nodes.values().filter(|n| n.kind == Kind::Log) {
            let pieces = node.body.read().pieces.clone();
            for piece in pieces {
                let is_in_two = self.device.twin(piece.at.zone).is_some();
                if is_in_two && !self.is_sequential(piece.at.zone) {
                    levelled += u64::from(self.level_record(node, &piece)?);
                }
            }
        }
        Ok(levelled)
    }

    /// Writes a record again if only one copy is whole or the two differ; whether it was written.
    fn level_record(&self, node: &Node, piece: &Piece) -> Result<bool> {
        let (device, inode) = (&*self.device, node.inode);
        let g = device.geometry();
        let at = ZoneAddress::new(piece.at.zone, piece.at.offset - HEADER as u64);
        let Some([_, other]) = device.copies_of(at.zone) else {
            return Ok(false);
        };
        // The whole record, although a truncation may have shortened its piece.
        let record = match (
            record_at(device, inode, at),
            record_in_copy(device, inode, at, other),
        ) {
            (Ok(Some(one)), Ok(Some(other))) if one == other => return Ok(false),
            (Ok(Some(record)), _) | (_, Ok(Some(record))) => Some(record),
            _ => None,
        };
        let blocks = record.map(|record| appender::padded(&record, g.block_size).into_owned());
        let written = blocks.map(|blocks| device.write(g.absolute(at), &blocks));
        match written {
            Some(Err(error @ ZoneError::PowerLost { .. })) => Err(error.into()),
            Some(Err(error)) => {
                tracing::warn!(%error, %at, "a copy of a log record stays damaged");
                Ok(false)
            }
            // Both copies are damaged: a read of the log reports it.
            None => Ok(false),
            Some(Ok(())) => Ok(true),
        }
    }
}
