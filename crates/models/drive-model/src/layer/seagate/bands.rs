//! Bands of a fixed number of tracks, and so of one capacity within a recording zone.

use crate::mechanics::Geometry;
use crate::request::Pba;
use serde::{Deserialize, Serialize};

/// A band: logical blocks that are cleaned together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Band {
    pub first: u64,
    pub blocks: u64,
}

/// All bands, by recording zone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Bands {
    /// Number of physical blocks before the first logical one.
    offset: u64,
    zones: Vec<Zone>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Zone {
    first: u64,
    end: u64,
    band_blocks: u64,
}

impl Bands {
    pub fn new(geometry: &Geometry, offset: u64, blocks: u64, band_tracks: u32) -> Self {
        let zones = geometry.recording_zones().filter_map(|zone| {
            let logical = |physical: u64| physical.saturating_sub(offset).min(blocks);
            let first = logical(zone.first.0);
            let end = logical(zone.first.0 + zone.blocks);
            let band_blocks = (zone.track_blocks * f64::from(band_tracks)).round() as u64;
            (first < end).then_some(Zone {
                first,
                end,
                band_blocks: band_blocks.max(1),
            })
        });
        Self {
            offset,
            zones: zones.collect(),
        }
    }

    pub const fn native(&self, lba: u64) -> Pba {
        Pba(lba + self.offset)
    }

    pub const fn logical(&self, pba: Pba) -> u64 {
        pba.0.saturating_sub(self.offset)
    }

    /// The band of a block; the last band of a recording zone may be short.
    pub fn band(&self, lba: u64) -> Band {
        let behind = self.zones.partition_point(|zone| zone.first <= lba);
        let zone = self.zones[behind.max(1) - 1];
        let first = zone.first + (lba - zone.first) / zone.band_blocks * zone.band_blocks;
        Band {
            first,
            blocks: zone.band_blocks.min(zone.end.saturating_sub(first)).max(1),
        }
    }
}
