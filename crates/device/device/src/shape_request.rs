//! The requested properties of a drive that is to be created: a profile and deviations from it.

use crate::drive::Drive;
use crate::profile::{self, ProfileError};
use crate::zoned_device::ZonedDevice;
use zone::{Bytes, Geometry, GeometryError};

/// The default profile.
const USUAL_PROFILE: &str = "hm-smr-14tb";

/// Requested properties of a drive; those that are `None` come from the profile.
#[derive(Clone, Default, Debug)]
pub struct ShapeRequest {
    /// Name of a profile.
    pub profile: Option<String>,
    /// Size in bytes, rounded down to whole zones.
    pub size: Option<u64>,
    /// Zone size in bytes.
    pub zone_size: Option<u64>,
    /// Zone capacity in bytes.
    pub zone_capacity: Option<u64>,
    /// Number of conventional zones, at the start of the drive.
    pub conventional: Option<u32>,
    /// Most zones open at once; 0 for no limit. Raises the limit of active zones if necessary.
    pub max_open: Option<u32>,
    /// Most zones active at once; 0 for no limit. Lowers the limit of open zones if necessary.
    pub max_active: Option<u32>,
}

/// Why no drive has the requested properties.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ShapeError {
    /// The profile has no geometry for them.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The resulting geometry is not valid.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
}

impl ShapeRequest {
    /// The name of the requested profile, or of the default one.
    pub fn profile(&self) -> &str {
        self.profile.as_deref().unwrap_or(USUAL_PROFILE)
    }

    /// The geometry of a drive with these properties.
    ///
    /// # Errors
    /// There is no such drive.
    pub fn geometry(&self) -> Result<Geometry, ShapeError> {
        let profile = profile::by_name(self.profile())?;
        let size = self.size.unwrap_or(profile.default_size_bytes);
        // The room for fewer conventional zones is enough for them.
        let most_conventional = self.conventional.unwrap_or(u32::MAX);
        let mut geometry = profile.geometry_with(size, self.zone_size, most_conventional)?;
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

    /// The requested properties in which an existing drive differs: the property, named as its field here but
    /// with hyphens, the requested value, and the drive's value.
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
        // A drive's size is rounded down to whole zones when it is created.
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
    fn a_small_drive_has_room_for_as_few_conventional_zones_as_are_asked_for() {
        let mut request = ShapeRequest {
            profile: Some("ha-smr-8tb".to_owned()),
            size: Some(4 << 30),
            conventional: Some(2),
            ..ShapeRequest::default()
        };
        let geometry = request.geometry().unwrap();
        assert_eq!((geometry.zone_count, geometry.conventional_zones), (16, 2));
        request.size = Some(1 << 30);
        let error = request.geometry().unwrap_err().to_string();
        assert!(error.contains("1.50 GiB"), "{error}");
        request.conventional = None;
        let error = request.geometry().unwrap_err();
        assert!(matches!(error, ShapeError::Profile(_)), "{error}");
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
