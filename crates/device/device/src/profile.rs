//! Profiles: geometry and limits of kinds of zoned drives. The timing of a drive is in the drive model of the
//! same name.

use crate::file::format::MAX_ZONES;
use thiserror::Error;
use zone::{Bytes, Geometry, ZoneKind};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const BLOCK_SIZE: u32 = 4096;

/// A kind of drive.
#[derive(Clone, PartialEq, Debug)]
pub struct Profile {
    /// Its name on the command line.
    pub name: &'static str,
    /// A description in one line.
    pub description: &'static str,
    /// Default size of a drive in bytes, including the gaps after zone capacities.
    pub default_size_bytes: u64,
    /// Default size of a zone in bytes.
    pub default_zone_size: u64,
    /// Zone capacity as a fraction of the zone size: numerator and denominator.
    capacity: (u64, u64),
    conventional: Conventional,
    sequential_kind: ZoneKind,
    max_open_zones: u32,
    max_active_zones: u32,
    max_append_bytes: u32,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Conventional {
    Zones(u32),
    /// One in a hundred, rounded up, but at least `least`.
    Percent {
        least: u32,
    },
}

/// Why a profile has no geometry for a request.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ProfileError {
    /// There is no such profile.
    #[error("there is no profile '{name}'; there are {}", names())]
    Unknown {
        /// The requested name.
        name: String,
    },
    /// The zone size is not possible.
    #[error(
        "a zone of {zone_size} bytes: it must be a multiple of {block_size} bytes, and one that \
         leaves at least a block to write; {profile} has zones of {}",
        Bytes(*default)
    )]
    ZoneSize {
        /// The requested zone size.
        zone_size: u64,
        /// Bytes of a block.
        block_size: u32,
        /// The name of the profile.
        profile: &'static str,
        /// Its default zone size.
        default: u64,
    },
    /// The drive would have too few zones for the profile.
    #[error(
        "{} are {zones} zones of {}, {profile} needs at least {minimum}: make the drive {} \
         ({} bytes) or more, or its zones smaller",
        Bytes(*size_bytes), Bytes(*zone_size), Bytes(least(*minimum, *zone_size)),
        least(*minimum, *zone_size)
    )]
    TooSmall {
        /// The requested size.
        size_bytes: u64,
        /// The number of zones of that size.
        zones: u64,
        /// Bytes of a zone.
        zone_size: u64,
        /// The name of the profile.
        profile: &'static str,
        /// The fewest zones for this profile.
        minimum: u32,
    },
    /// The drive would have too many zones.
    #[error(
        "{} are {zones} zones of {}, at most {MAX_ZONES} are possible: make the drive smaller or its \
         zones larger",
        Bytes(*size_bytes), Bytes(*zone_size)
    )]
    TooLarge {
        /// The requested size.
        size_bytes: u64,
        /// The number of zones of that size.
        zones: u64,
        /// Bytes of a zone.
        zone_size: u64,
    },
}

/// Bytes of the smallest drive of the profile. The rounded figure in the message may be too small.
fn least(minimum: u32, zone_size: u64) -> u64 {
    u64::from(minimum).saturating_mul(zone_size)
}

/// Fewest sequential zones of a usable drive: some to write to and some to clean into.
const LEAST_SEQUENTIAL_ZONES: u32 = 4;

static PROFILES: [Profile; 4] = [
    Profile {
        name: "hm-smr-14tb",
        description: "14 TB host-managed SMR disk: 256 MiB zones, 1 % conventional, 128 open zones",
        default_size_bytes: 64 * GIB,
        default_zone_size: 256 * MIB,
        capacity: (1, 1),
        conventional: Conventional::Percent { least: 2 },
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 128,
        max_active_zones: 0,
        max_append_bytes: 0,
    },
    Profile {
        name: "ha-smr-8tb",
        description: "8 TB host-aware SMR disk: 256 MiB zones, 64 conventional, writes in any order",
        default_size_bytes: 64 * GIB,
        default_zone_size: 256 * MIB,
        capacity: (1, 1),
        conventional: Conventional::Zones(64),
        sequential_kind: ZoneKind::SequentialWritePreferred,
        max_open_zones: 0,
        max_active_zones: 0,
        max_append_bytes: 0,
    },
    Profile {
        name: "zns-zn540",
        description: "ZNS SSD: 2 GiB zones of 1,077 MiB capacity, 14 open and active zones, append",
        default_size_bytes: 904 * 2048 * MIB,
        default_zone_size: 2048 * MIB,
        capacity: (1077, 2048),
        conventional: Conventional::Zones(0),
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 14,
        max_active_zones: 14,
        max_append_bytes: 128 << 10,
    },
    Profile {
        name: "test-small",
        description: "small and fast, for tests: 1 MiB zones, 4 conventional, 16 open and active",
        default_size_bytes: 256 * MIB,
        default_zone_size: MIB,
        capacity: (1, 1),
        conventional: Conventional::Zones(4),
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 16,
        max_active_zones: 16,
        max_append_bytes: 256 << 10,
    },
];

/// All profiles.
pub fn all() -> &'static [Profile] {
    &PROFILES
}

/// The profile of this name.
pub fn by_name(name: &str) -> Result<&'static Profile, ProfileError> {
    let found = PROFILES.iter().find(|profile| profile.name == name);
    found.ok_or_else(|| ProfileError::Unknown { name: name.into() })
}

fn names() -> String {
    PROFILES
        .iter()
        .map(|profile| profile.name)
        .collect::<Vec<_>>()
        .join(", ")
}

impl Profile {
    /// The geometry of a drive of `size_bytes`, rounded down to whole zones. `zone_size` replaces the profile's
    /// zone size; the capacity keeps its share of the zone.
    pub fn geometry(
        &self,
        size_bytes: u64,
        zone_size: Option<u64>,
    ) -> Result<Geometry, ProfileError> {
        self.geometry_with(size_bytes, zone_size, u32::MAX)
    }

    /// As [`Self::geometry`], with at most so many conventional zones.
    pub(crate) fn geometry_with(
        &self,
        size_bytes: u64,
        zone_size: Option<u64>,
        most_conventional: u32,
    ) -> Result<Geometry, ProfileError> {
        let block = u64::from(BLOCK_SIZE);
        let zone_size = zone_size.unwrap_or(self.default_zone_size);
        let (share, of) = self.capacity;
        let capacity = (u128::from(zone_size) * u128::from(share) / u128::from(of)) as u64;
        let zone_capacity = capacity - capacity % block;
        if !zone_size.is_multiple_of(block) || zone_capacity == 0 {
            return Err(ProfileError::ZoneSize {
                zone_size,
                block_size: BLOCK_SIZE,
                profile: self.name,
                default: self.default_zone_size,
            });
        }
        let zones = size_bytes / zone_size;
        let zone_count = u32::try_from(zones)
            .ok()
            .filter(|zones| *zones <= MAX_ZONES);
        let zone_count = zone_count.ok_or(ProfileError::TooLarge {
            size_bytes,
            zones,
            zone_size,
        })?;
        let conventional_zones = match self.conventional {
            Conventional::Zones(zones) => zones,
            Conventional::Percent { least } => zone_count.div_ceil(100).max(least),
        };
        let conventional_zones = conventional_zones.min(most_conventional);
        let minimum = conventional_zones + LEAST_SEQUENTIAL_ZONES;
        if zone_count < minimum {
            let profile = self.name;
            return Err(ProfileError::TooSmall {
                size_bytes,
                zones,
                zone_size,
                profile,
                minimum,
            });
        }
        Ok(Geometry {
            block_size: BLOCK_SIZE,
            zone_size,
            zone_capacity,
            zone_count,
            conventional_zones,
            conventional_parts: 1,
            sequential_kind: self.sequential_kind,
            max_open_zones: self.max_open_zones,
            max_active_zones: self.max_active_zones,
            // An append cannot exceed the zone's capacity.
            max_append_bytes: u64::from(self.max_append_bytes).min(zone_capacity) as u32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_gives_a_valid_drive_of_its_default_size() {
        for profile in all() {
            let g = profile.geometry(profile.default_size_bytes, None).unwrap();
            assert_eq!(g.validate(), Ok(()), "{}", profile.name);
            assert_eq!(
                g.size_bytes(),
                profile.default_size_bytes,
                "{}",
                profile.name
            );
            assert_eq!(by_name(profile.name), Ok(profile));
        }
    }

    #[test]
    fn the_modelled_drives_have_the_published_shape() {
        let smr = by_name("hm-smr-14tb").unwrap();
        let g = smr.geometry(64 << 30, None).unwrap();
        assert_eq!(
            (g.zone_count, g.conventional_zones, g.max_open_zones),
            (256, 3, 128)
        );
        let g = smr.geometry(14_000_000_000_000, None).unwrap();
        assert_eq!((g.zone_count, g.conventional_zones), (52_154, 522));
        let zns = by_name("zns-zn540").unwrap();
        let g = zns.geometry(zns.default_size_bytes, None).unwrap();
        assert_eq!((g.zone_count, g.zone_capacity), (904, 1077 << 20));
    }

    #[test]
    fn a_zone_size_of_ones_own_keeps_the_share_of_capacity() {
        let zns = by_name("zns-zn540").unwrap();
        let g = zns.geometry(64 << 20, Some(2 << 20)).unwrap();
        assert_eq!((g.zone_count, g.validate()), (32, Ok(())));
        assert_eq!(g.zone_capacity, (2 << 20) * 1077 / 2048 / 4096 * 4096);
    }

    #[test]
    fn impossible_wishes_are_answered_with_what_would_do() {
        let smr = by_name("hm-smr-14tb").unwrap();
        let error = smr.geometry(1 << 30, None).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("make the drive 1.50 GiB (1610612736 bytes) or more"),
            "{error}"
        );
        assert!(smr.geometry(1_610_612_736, None).is_ok());
        assert!(matches!(
            smr.geometry(1 << 30, Some(1000)).unwrap_err(),
            ProfileError::ZoneSize {
                zone_size: 1000,
                ..
            }
        ));
        assert!(matches!(
            smr.geometry(u64::MAX, Some(4096)).unwrap_err(),
            ProfileError::TooLarge { .. }
        ));
        assert!(matches!(
            smr.geometry(1 << 40, Some(0)),
            Err(ProfileError::ZoneSize { .. })
        ));
        let error = by_name("floppy").unwrap_err().to_string();
        assert!(
            error.contains("hm-smr-14tb, ha-smr-8tb, zns-zn540, test-small"),
            "{error}"
        );
    }
}
