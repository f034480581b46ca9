//! Drives to measure on.

use device::ZonedDevice;
use runtime::Runtime;
use std::sync::Arc;
use thiserror::Error;

/// Drives of one kind, and their clock.
pub trait Bed {
    /// A drive on which all sequential zones are empty. The one before is not used any more.
    ///
    /// # Errors
    /// There is none.
    fn fresh(&mut self) -> Result<Arc<dyn ZonedDevice>, Error>;

    /// The drives' clock.
    fn runtime(&self) -> &Runtime;

    /// What is measured next; an error ends it.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    fn next(&mut self, what: &str) -> Result<(), Error>;
}

/// Why nothing was measured.
#[allow(missing_docs)]
#[derive(Clone, Debug, Error)]
pub enum Error {
    /// Somebody wanted it to stop.
    #[error("interrupted")]
    Interrupted,
    /// There is no drive to measure on.
    #[error("{0}")]
    NoDrive(String),
    /// The drive has too few sequential zones for what is asked.
    #[error("{bytes} bytes do not fit into the drive's sequential zones")]
    NoRoom { bytes: u64 },
    /// ZEA.
    #[error(transparent)]
    Zea(#[from] zea::Error),
    /// The drive.
    #[error("drive: {0}")]
    Drive(#[from] zone::ZoneError),
}
