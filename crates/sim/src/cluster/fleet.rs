//! The drives of a cluster, all of one kind: how they are timed, and where their data lies.

use super::calibration::{Sizes, calibrate};
use super::cleaner::piece_bytes;
use super::model_disk::BackEnd;
use super::scenario::{Disks, Impossible, Layout};
use crate::policy::Policy;
use drive_model::Profile;
use drive_model::layer::LayerShape;
use std::sync::Arc;
use zone_alloc::{Pace, Watermarks};

/// Bytes for data in place of a zone on drives without zones, so that drives of all kinds hold as much.
const UNIT_BYTES: u64 = 256 << 20;

/// Why no cluster can have drives of this profile, if so. The simulation reads objects that no request has written,
/// and writes over others.
pub(super) fn why_not(profile: &Profile) -> Option<&'static str> {
    matches!(profile.layer, LayerShape::CaveatScriptor(_)).then_some(
        "on a Caveat-Scriptor disk a write damages what lies behind it, and what was never written cannot be \
         read: no cluster is simulated with such drives",
    )
}

/// Drives of one profile, and how full they are.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// The profile of the drives.
    pub profile: Profile,
    /// Whether each drive is a model; else times are drawn from measurements on one.
    pub models: bool,
    /// Zones for data of each drive; on drives without zones, units of 256 MiB.
    pub zones: u32,
    /// Live data ÷ zones for data.
    pub utilization: f64,
    /// Numbers of free zones at which cleaning begins and becomes urgent.
    pub free_zones: Watermarks,
    /// Limit on cleaning that is not urgent.
    pub pace: Pace,
    /// Which zone is cleaned next.
    pub policy: Policy,
}

impl Fleet {
    /// Whether the drives have zones, which the host cleans.
    pub const fn has_zones(&self) -> bool {
        self.profile.zones.is_some()
    }

    /// Timing and layout of drives for parts of `part_bytes`. A known persistent cache starts full if the drive has
    /// data, as after a long load.
    ///
    /// # Errors
    /// There are no zones, a part is empty or too large for a zone, or the profile cannot be built or simulated in a
    /// cluster.
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
