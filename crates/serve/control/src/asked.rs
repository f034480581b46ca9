//! [`Client`] as a server of [`inspect::Source`], for drives that are inspected without their lock.

use crate::api::MAX_ZONES;
use crate::client::Client;
use crate::error::ClientError;
use inspect::{Server, Source};
use runtime::Runtime;
use std::path::Path;
use store::ZoneUse;
use zone::ZoneDescriptor;

impl Server for Client {
    type Error = ClientError;

    fn pid(&self) -> u32 {
        self.hello().pid
    }

    fn zones(&self, first: u32, count: u32) -> Result<Vec<ZoneDescriptor>, ClientError> {
        Self::zones(self, first, count)
    }

    fn store_zones(&self, first: u32, count: u32) -> Result<Vec<ZoneUse>, ClientError> {
        Self::store_zones(self, first, count)
    }
}

impl Client {
    /// The drive at `path`, to be inspected; its daemon is asked for what cannot be read from the drive.
    pub fn source(path: &Path) -> Source<Self> {
        Source::new(path, MAX_ZONES, Self::connect, Runtime::system())
    }
}
