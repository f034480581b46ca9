//! The drives that benchmarks run on, and the errors of a benchmark.

use device::ZonedDevice;
use runtime::Runtime;
use std::sync::Arc;
use thiserror::Error;

/// A source of drives of one kind, with their clock.
pub trait Bed {
    /// Returns a drive on which all sequential zones are empty. The drive returned before is no longer used.
    ///
    /// # Errors
    /// No drive is available.
    fn fresh(&mut self) -> Result<Arc<dyn ZonedDevice>, Error>;

    /// The clock of the drives.
    fn runtime(&self) -> &Runtime;

    /// Announces the next measurement, `what`; an error stops the benchmark.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    fn next(&mut self, what: &str) -> Result<(), Error>;
}

/// Why a benchmark failed.
#[allow(missing_docs)]
#[derive(Clone, Debug, Error)]
pub enum Error {
    /// The caller stopped the benchmark.
    #[error("interrupted")]
    Interrupted,
    /// No drive is available to measure on.
    #[error("{0}")]
    NoDrive(String),
    /// The drive has too few sequential zones for the requested data.
    #[error("{bytes} bytes do not fit into the drive's sequential zones")]
    NoRoom { bytes: u64 },
    /// An error of ZEA.
    #[error(transparent)]
    Zea(#[from] zea::Error),
    /// An error of the drive.
    #[error("drive: {0}")]
    Drive(#[from] zone::ZoneError),
}
