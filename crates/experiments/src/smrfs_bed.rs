//! The two file systems of the Caveat-Scriptor thesis, each on a new disk in virtual time, without FUSE.

use crate::experiment::{Run, Stopped};
use caveat::{CaveatDevice, CaveatShape};
use drive_model::{Profile, Timed, ZonedDisk};
use runtime::{Clock, Runtime, SimulatedClock};
use smrfs::{Error, FileSystem, Medium, MkfsOptions, MountOptions, NewInode};
use std::sync::Arc;
use std::time::Duration;
use zone::{Geometry, ZoneKind};

pub(crate) const DISK: &str = "hm-smr-14tb";
pub(crate) const MIB: u64 = 1 << 20;

#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Bands,
    Caveat,
}

impl Kind {
    pub(crate) const BOTH: [Self; 2] = [Self::Bands, Self::Caveat];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bands => "strict append",
            Self::Caveat => "Caveat-Scriptor",
        }
    }
}

/// A file system on a new disk, in virtual time that only the disk takes.
pub(crate) struct Bed {
    pub(crate) fs: FileSystem,
    clock: Arc<SimulatedClock>,
}

impl Bed {
    /// Makes and mounts a file system on 64 zones of a disk.
    pub(crate) fn new(
        run: &Run<'_>,
        kind: Kind,
        zone_size: u64,
        options: &MkfsOptions,
    ) -> Result<Self, Stopped> {
        let clock = Arc::new(SimulatedClock::default());
        let runtime = Runtime::seeded(run.seed).with_clock(clock.clone());
        // Both have the same mechanics: addresses lie on the platters in order.
        let mut profile = Profile::named(DISK)?;
        profile.zones = None;
        let (zones, conventional) = (64, 4);
        let geometry = Geometry {
            block_size: 4096,
            zone_size,
            zone_capacity: zone_size,
            zone_count: zones,
            conventional_zones: match kind {
                Kind::Bands => conventional,
                Kind::Caveat => zones,
            },
            conventional_parts: 1,
            sequential_kind: ZoneKind::SequentialWriteRequired,
            max_open_zones: 0,
            max_active_zones: 0,
            max_append_bytes: 0,
        };
        let disk = ZonedDisk::new(profile.drive(run.seed)?, geometry).map_err(Stopped::store)?;
        let timed = Timed::in_memory(Box::new(disk), clock.clone()).map_err(Stopped::store)?;
        let timed = Arc::new(timed);
        let medium = match kind {
            Kind::Bands => Medium::Bands(timed),
            Kind::Caveat => {
                // The distances of the thesis, section 5.2.
                let shape = CaveatShape {
                    block_size: 4096,
                    isolation_distance: 16,
                    no_overlap_range: 6,
                    unshingled_bytes: u64::from(conventional) * zone_size,
                };
                let drive = CaveatDevice::in_memory(timed, &shape, None).map_err(Stopped::store)?;
                Medium::Caveat(Arc::new(drive))
            }
        };
        FileSystem::mkfs_on(&medium, &runtime, options)?;
        let fs = FileSystem::mount_on(&medium, runtime, MountOptions::default())?;
        Ok(Self { fs, clock })
    }

    /// The virtual time.
    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Makes a directory or a file. Returns its inode number.
    pub(crate) fn make(&self, dir: u64, name: u64, kind: u32) -> Result<u64, Error> {
        let new = NewInode {
            mode: kind | 0o755,
            uid: 0,
            gid: 0,
            rdev: 0,
        };
        let made = self.fs.create(dir, name.to_string().as_bytes(), new)?;
        Ok(made.ino)
    }
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::store(error)
    }
}
