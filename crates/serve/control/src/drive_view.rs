//! A drive to look at: opened by this process, or asked of the daemon that has it.

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

/// A drive to look at.
pub enum DriveView {
    /// Opened by this process, for reading.
    Here(Drive),
    /// Served by another one.
    Served(Client, DriveDescription),
}

impl DriveView {
    /// Opens the drive, or asks who has it open.
    ///
    /// # Errors
    /// Neither is possible.
    pub fn open(path: &Path) -> Result<Self, ViewError> {
        Ok(match Opened::open(path, false)? {
            Opened::Drive(drive) => Self::Here(drive),
            Opened::Served(client) => {
                let drive = client.drive()?;
                Self::Served(client, drive)
            }
        })
    }

    /// Its shape.
    pub fn geometry(&self) -> &Geometry {
        match self {
            Self::Here(drive) => drive.geometry(),
            Self::Served(_, drive) => &drive.geometry,
        }
    }

    /// The profile it was made from.
    pub fn profile(&self) -> &str {
        match self {
            Self::Here(drive) => drive.profile_name(),
            Self::Served(_, drive) => &drive.profile,
        }
    }

    /// What distinguishes it from all others.
    pub fn uuid(&self) -> String {
        match self {
            Self::Here(drive) => drive.identity(),
            Self::Served(_, drive) => drive.uuid.clone(),
        }
    }

    /// Bytes that its file takes on the host.
    ///
    /// # Errors
    /// The file cannot be asked.
    pub fn host_bytes(&self) -> Result<u64, ViewError> {
        match self {
            Self::Here(drive) => drive.host_bytes().map_err(|source| ViewError::File {
                path: drive.path().to_owned(),
                source,
            }),
            Self::Served(_, drive) => Ok(drive.host_bytes),
        }
    }

    /// What is on it.
    pub fn content(&self) -> Content {
        match self {
            Self::Here(drive) => Content::of(drive),
            // Nothing else is served.
            Self::Served(..) => Content::Store,
        }
    }

    /// Shows `each` these zones, in order.
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

    /// How many zones are in each condition, by its name, and how many bytes are written in sequential zones.
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
