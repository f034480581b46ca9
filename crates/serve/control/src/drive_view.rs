//! A drive to inspect: opened by this process, or served by a daemon.

use crate::api::DriveDescription;
use crate::client::Client;
use crate::error::ViewError;
use crate::opened::Opened;
use device::erase::REPORT_BATCH;
use device::{Drive, ZonedDevice};
use inspect::Content;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use zone::{Geometry, ZoneDescriptor, ZoneId};

/// A drive to inspect.
pub enum DriveView {
    /// Opened by this process, read-only.
    Here(Drive),
    /// Served by another process.
    Served(Client, DriveDescription),
}

impl DriveView {
    /// Opens the drive, or connects to the daemon that has it open.
    ///
    /// # Errors
    /// The drive cannot be opened, and no daemon can be asked.
    pub fn open(path: &Path) -> Result<Self, ViewError> {
        Ok(match Opened::open(path, false)? {
            Opened::Drive(drive) => Self::Here(drive),
            Opened::Served(client) => {
                let drive = client.drive()?;
                Self::Served(client, drive)
            }
        })
    }

    /// Number, size and kinds of its zones.
    pub fn geometry(&self) -> &Geometry {
        match self {
            Self::Here(drive) => drive.geometry(),
            Self::Served(_, drive) => &drive.geometry,
        }
    }

    /// Name of the profile that the drive was made from.
    pub fn profile(&self) -> &str {
        match self {
            Self::Here(drive) => drive.profile_name(),
            Self::Served(_, drive) => &drive.profile,
        }
    }

    /// Unique identity of the drive.
    pub fn uuid(&self) -> String {
        match self {
            Self::Here(drive) => drive.identity(),
            Self::Served(_, drive) => drive.uuid.clone(),
        }
    }

    /// Bytes that its file takes on the host.
    ///
    /// # Errors
    /// The file's size cannot be read.
    pub fn host_bytes(&self) -> Result<u64, ViewError> {
        match self {
            Self::Here(drive) => drive.host_bytes().map_err(|source| ViewError::File {
                path: drive.path().to_owned(),
                source,
            }),
            Self::Served(_, drive) => Ok(drive.host_bytes),
        }
    }

    /// The kind of data on the drive.
    pub fn content(&self) -> Content {
        match self {
            Self::Here(drive) => Content::of(drive),
            // Daemons serve stores only.
            Self::Served(..) => Content::Store,
        }
    }

    /// Calls `each` with these zones, in order.
    ///
    /// # Errors
    /// Also those of `each`.
    pub fn for_each_zone<E: From<ViewError>>(
        &self,
        zones: Range<u32>,
        mut each: impl FnMut(ZoneDescriptor) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut first = zones.start;
        while first < zones.end {
            let batch = self.zones(first, REPORT_BATCH.min(zones.end - first))?;
            if batch.is_empty() {
                break;
            }
            first += batch.len() as u32;
            batch.into_iter().try_for_each(&mut each)?;
        }
        Ok(())
    }

    /// Number of zones by the name of their condition, and the sum of all write pointers in bytes.
    ///
    /// # Errors
    /// The drive or its server does not answer.
    pub fn conditions(&self) -> Result<(BTreeMap<&'static str, u64>, u64), ViewError> {
        let (mut conditions, mut written) = (BTreeMap::new(), 0);
        self.for_each_zone(0..self.geometry().zone_count, |zone| {
            *conditions.entry(zone.condition.name()).or_default() += 1;
            written += zone.write_pointer;
            Ok::<_, ViewError>(())
        })?;
        Ok((conditions, written))
    }

    /// Zones from `first` on, `count` at most.
    fn zones(&self, first: u32, count: u32) -> Result<Vec<ZoneDescriptor>, ViewError> {
        match self {
            Self::Here(drive) => Ok(drive.report(ZoneId(first), count)?),
            Self::Served(client, _) => Ok(client.zones(first, count)?),
        }
    }
}
