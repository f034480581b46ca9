//! What somebody asks of a drive that is to be made: a profile, and what differs from it.

use crate::drive::Drive;
use crate::profile::{self, ProfileError};
use crate::zoned_device::ZonedDevice;
use zone::{Bytes, Geometry, GeometryError};

/// The profile of a drive of which nothing else is said.
const USUAL_PROFILE: &str = "hm-smr-14tb";

/// See the head of this file. What is `None` is the profile's.
#[derive(Clone, Default, Debug)]
pub struct ShapeRequest {
    /// A profile's name.
    pub profile: Option<String>,
    /// Bytes, of which whole zones are taken.
    pub size: Option<u64>,
    /// Bytes from one zone to the next.
    pub zone_size: Option<u64>,
    /// Bytes of a zone that can be written.
    pub zone_capacity: Option<u64>,
    /// How many conventional zones it begins with.
    pub conventional: Option<u32>,
    /// Most zones open at once; 0 for no limit. The limit of active zones grows with it.
    pub max_open: Option<u32>,
    /// Most zones active at once; 0 for no limit. The limit of open zones shrinks with it.
    pub max_active: Option<u32>,
}

/// Why there is no such drive.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ShapeError {
    /// The profile gives none.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// What differs from the profile does not go together.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
}

impl ShapeRequest {
    /// The profile asked for, or the usual one.
    pub fn profile(&self) -> &str {
        self.profile.as_deref().unwrap_or(USUAL_PROFILE)
    }

    /// The geometry of such a drive.
    ///
    /// # Errors
    /// There is none.
    pub fn geometry(&self) -> Result<Geometry, ShapeError> {
        let profile = profile::by_name(self.profile())?;
        let size = self.size.unwrap_or(profile.default_size_bytes);
        let mut geometry = profile.geometry(size, self.zone_size)?;
        if let Some(capacity) = self.zone_capacity {
            geometry.zone_capacity = capacity;
        }
        if let Some(zones) = self.conventional {
            geometry.conventional_zones = zones;
        }
        if let Some(zones) = self.max_active {
            geometry.max_active_zones = zones;
            if self.max_open.is_none() && zones != 0 {
                geometry.max_open_zones = geometry.max_open_zones.min(zones);
            }
        }
        if let Some(zones) = self.max_open {
            geometry.max_open_zones = zones;
            if self.max_active.is_none() && geometry.max_active_zones != 0 {
                geometry.max_active_zones = geometry.max_active_zones.max(zones);
            }
        }
        geometry.validate()?;
        Ok(geometry)
    }

    /// What a drive that exists has instead: the name of what was asked for, as fields here are called but
    /// with hyphens, what was asked for, and what the drive has.
    pub fn differences(&self, drive: &Drive) -> Vec<(&'static str, String, String)> {
        let there = drive.geometry();
        let bytes = |name, asked: Option<u64>, found| {
            let asked = asked.filter(|asked| *asked != found);
            asked.map(|asked| (name, Bytes(asked).to_string(), Bytes(found).to_string()))
        };
        let zones = |name, asked: Option<u32>, found| {
            let asked = asked.filter(|asked| *asked != found);
            asked.map(|asked| (name, asked.to_string(), found.to_string()))
        };
        let profile = self.profile.as_ref();
        let profile = profile.filter(|asked| *asked != drive.profile_name());
        // A new drive is rounded down to whole zones.
        let size = self.size.map(|size| size - size % there.zone_size);
        [
            profile.map(|asked| ("profile", asked.clone(), drive.profile_name().to_owned())),
            bytes("size", size, there.size_bytes()),
            bytes("zone-size", self.zone_size, there.zone_size),
            bytes("zone-capacity", self.zone_capacity, there.zone_capacity),
            zones("conventional", self.conventional, there.conventional_zones),
            zones("max-open", self.max_open, there.max_open_zones),
            zones("max-active", self.max_active, there.max_active_zones),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> ShapeRequest {
        ShapeRequest {
            profile: Some("zns-zn540".to_owned()),
            size: Some(64 << 30),
            ..ShapeRequest::default()
        }
    }

    #[test]
    fn one_limit_takes_the_other_with_it() {
        let geometry = |change: fn(&mut ShapeRequest)| {
            let mut request = request();
            change(&mut request);
            let geometry = request.geometry().unwrap();
            (geometry.max_open_zones, geometry.max_active_zones)
        };
        assert_eq!(geometry(|_| ()), (14, 14));
        assert_eq!(geometry(|s| s.max_open = Some(20)), (20, 20));
        assert_eq!(geometry(|s| s.max_open = Some(8)), (8, 14));
        assert_eq!(geometry(|s| s.max_active = Some(8)), (8, 8));
        assert_eq!(geometry(|s| s.max_active = Some(0)), (14, 0));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut wrong = request();
        (wrong.max_open, wrong.max_active) = (Some(9), Some(8));
        let error = wrong.geometry().unwrap_err();
        let limits = GeometryError::Limits { open: 9, active: 8 };
        assert_eq!(error, ShapeError::Geometry(limits));
        wrong.profile = Some("floppy".to_owned());
        let error = wrong.geometry().unwrap_err();
        assert!(matches!(error, ShapeError::Profile(_)), "{error}");
    }
}
