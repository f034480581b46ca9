//! Compares metadata with the drive.

use crate::format::crc32c;
use crate::format::journal::Kind;
use crate::format::log_record::HEADER;
use crate::node::{Piece, read_bytes};
use crate::shared::Shared;
use crate::{Error, Result};
use device::ZonedDevice;
use serde::Serialize;
use std::collections::BTreeMap;
use zone::{ZoneAddress, ZoneCondition, ZoneId};
use zone_alloc::Owner;

/// What a check found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CheckReport {
    /// Files.
    pub files: u64,
    /// Extents and log records.
    pub extents: u64,
    /// Bytes in files.
    pub bytes: u64,
    /// Bytes read and compared with their checksums.
    pub bytes_verified: u64,
    /// How many errors of each kind; empty means clean.
    pub errors: BTreeMap<String, u64>,
    /// The errors in words, the first hundred.
    pub details: Vec<String>,
}

impl CheckReport {
    /// Whether nothing was wrong.
    pub fn is_clean(&self) -> bool {
        self.errors.is_empty()
    }

    fn error(&mut self, kind: &str, detail: impl FnOnce() -> String) {
        *self.errors.entry(kind.to_owned()).or_default() += 1;
        if self.details.len() < 100 {
            self.details.push(format!("{kind}: {}", detail()));
        }
    }
}

impl Shared {
    pub(crate) fn check_all(&self, deep: bool) -> Result<CheckReport> {
        let state = self.state.lock();
        let g = self.device.geometry();
        let path = |inode: u64| state.names.path(inode);
        let mut report = CheckReport::default();
        for what in &state.damage {
            report.error("damage to what was durable", || what.to_string());
        }
        for zone in state.rings.without_superblock() {
            report.error("a copy of the superblock is lost", || {
                format!("zones {zone} and the next; a mount for writing makes it anew")
            });
        }
        let mut places: Vec<(ZoneAddress, u64, u64)> = Vec::new();
        let mut uses: BTreeMap<ZoneId, u32> = BTreeMap::new();
        for (inode, node) in &state.names.nodes {
            let body = node.body.read();
            report.files += 1;
            report.bytes += body.size();
            let header = if node.kind == Kind::Log {
                HEADER as u64
            } else {
                0
            };
            let mut next = 0;
            for piece in &body.pieces {
                report.extents += 1;
                if piece.file_offset != next {
                    report.error("hole in a file", || {
                        format!("{} at byte {next}", path(*inode))
                    });
                }
                next = piece.file_offset + piece.length;
                let at = ZoneAddress::new(piece.at.zone, piece.at.offset.saturating_sub(header));
                places.push((at, g.round_up(piece.length + header), *inode));
                if deep {
                    match self.verify(*inode, node.kind, piece) {
                        Ok(true) => report.bytes_verified += piece.length,
                        Ok(false) => report.error("checksum mismatch", || {
                            let (from, at) = (piece.file_offset, piece.at);
                            format!("{} at byte {from}, {at}", path(*inode))
                        }),
                        Err(error) => report.error("unreadable", || {
                            format!("{} at byte {}: {error}", path(*inode), piece.file_offset)
                        }),
                    }
                }
            }
            for zone in crate::node::Node::zones(&body, node.kind) {
                *uses.entry(zone).or_default() += 1;
            }
        }
        places.sort_unstable();
        for pair in places.windows(2) {
            if pair[0].0.zone == pair[1].0.zone && pair[0].0.offset + pair[0].1 > pair[1].0.offset {
                report.error("extents overlap", || {
                    format!(
                        "{} of {} and {}",
                        pair[1].0,
                        path(pair[0].2),
                        path(pair[1].2)
                    )
                });
            }
        }
        for (at, length, inode) in &places {
            if at.zone.0 >= g.zone_count || at.offset + length > g.capacity(at.zone) {
                report.error("extent behind the end of its zone", || {
                    format!("{}, {at}", path(*inode))
                });
                continue;
            }
            if self.pool.owner(at.zone) != Some(Owner::BlueFs) {
                report.error("extent in a zone of somebody else", || {
                    format!("{}, {at}", path(*inode))
                });
            }
            let zone = self.device.report_zone(at.zone)?;
            if zone.condition == ZoneCondition::Offline {
                report.error("in a zone that is offline", || {
                    format!("{}, {at}", path(*inode))
                });
            }
            if zone.write_pointer_valid() && at.offset + length > zone.write_pointer {
                report.error("extent above the write pointer", || {
                    format!("{}, {at}", path(*inode))
                });
            }
        }
        for (zone, count) in &uses {
            let recorded = state.zones.get(zone).map_or(0, |u| u.extents);
            if recorded < *count {
                report.error("zone has more extents than counted", || {
                    format!("zone {zone}")
                });
            }
        }
        for (path, inode) in &state.names.names {
            if !state.names.nodes.contains_key(inode) {
                report.error("name without a file", || path.clone());
            }
        }
        Ok(report)
    }

    fn verify(&self, inode: u64, kind: Kind, piece: &Piece) -> Result<bool> {
        if kind == Kind::Log {
            return Ok(self.read_record(inode, piece)?.is_some());
        }
        matches(&*self.device, piece)
    }
}

/// Whether a plain file's piece is what its checksum says.
pub(crate) fn matches(device: &dyn ZonedDevice, piece: &Piece) -> Result<bool> {
    // 0 stands for a piece that was cut and whose checksum is not known.
    if piece.checksum == 0 {
        return Ok(true);
    }
    let mut bytes = vec![0; piece.length as usize];
    read_bytes(device, piece.at, &mut bytes).map_err(Error::from)?;
    Ok(crc32c(&bytes) == piece.checksum)
}
