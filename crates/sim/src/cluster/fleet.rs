//! Drives of one kind as a cluster has them: how long they take, and where data lies on them.

use super::calibration::{Sizes, calibrate};
use super::cleaner::piece_bytes;
use super::model_disk::BackEnd;
use super::scenario::{Disks, Impossible, Layout};
use crate::policy::Policy;
use drive_model::Profile;
use drive_model::layer::LayerShape;
use std::sync::Arc;
use zone_alloc::{Pace, Watermarks};

/// A zone's worth on drives that have none, so that there is as much on all.
const UNIT_BYTES: u64 = 256 << 20;

/// Why a cluster has no such drives, if so. Objects are read that were never written as requests, and are written over
/// others.
pub(super) fn why_not(profile: &Profile) -> Option<&'static str> {
    matches!(profile.layer, LayerShape::CaveatScriptor(_)).then_some(
        "on a Caveat-Scriptor disk a write damages what lies behind it, and what was never written cannot be \
         read: no cluster is simulated with such drives",
    )
}

/// See the head of this file.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// The kind of drive.
    pub profile: Profile,
    /// Whether each drive is a model; else its times are drawn from those of one.
    pub models: bool,
    /// Zones for data of each, or as much on a drive without zones.
    pub zones: u32,
    /// Live data ÷ zones for data.
    pub utilization: f64,
    /// When it cleans.
    pub free_zones: Watermarks,
    /// How fast, unless it is urgent.
    pub pace: Pace,
    /// Which zone.
    pub policy: Policy,
}

impl Fleet {
    /// Whether the host cleans.
    pub const fn has_zones(&self) -> bool {
        self.profile.zones.is_some()
    }

    /// Drives for parts of objects of so many bytes. A drive whose persistent cache is known begins with a full one if
    /// it has data, as after a long load.
    ///
    /// # Errors
    /// The profile cannot be built, or nothing lies on it.
    pub fn build(&self, part_bytes: u64, seed: u64) -> Result<(Disks, Layout), Impossible> {
        if self.zones == 0 {
            return Err(Impossible::DriveSize);
        }
        if let Some(why) = why_not(&self.profile) {
            return Err(Impossible::Drive(why));
        }
        let layout = match &self.profile.zones {
            Some(shape) => Layout::Zones {
                zones: self.zones,
                zone_bytes: shape.zone_size_bytes,
                utilization: self.utilization,
                free_zones: self.free_zones,
                pace: self.pace,
                policy: self.policy,
            },
            None => Layout::Blocks {
                bytes: u64::from(self.zones) * UNIT_BYTES,
                utilization: self.utilization,
            },
        };
        let unit = self
            .profile
            .zones
            .as_ref()
            .map_or(UNIT_BYTES, |zones| zones.zone_size_bytes);
        let most = if self.models { unit } else { unit / 16 };
        if part_bytes == 0 || part_bytes > most {
            return Err(Impossible::ObjectSize { most });
        }
        let back_end = match layout {
            Layout::Zones { .. } => BackEnd::OneFlush,
            Layout::Blocks { .. } => BackEnd::TwoFlushes,
        };
        if self.models {
            let profile = Box::new(self.profile.clone());
            return Ok((Disks::Models { profile, back_end }, layout));
        }
        let sizes = Sizes {
            part: part_bytes,
            piece: piece_bytes(part_bytes),
            band_part: 1.0 - self.utilization,
        };
        let mut times = calibrate(&self.profile, back_end, sizes, seed)?;
        if let Some(translation) = &mut times.translation
            && self.utilization > 0.0
        {
            translation.cached_bytes = translation.cache_bytes;
        }
        Ok((Disks::Served(Arc::new(times)), layout))
    }
}
