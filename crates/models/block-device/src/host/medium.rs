//! The interface of a medium of the host, whose calls block.

use serde::Serialize;
use std::io;

/// Kinds of zones that a drive may report (the ZONED field of its characteristics).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Zoned {
    /// The drive has zones, and takes writes at other places than a write pointer.
    HostAware,
    /// The drive has zones, and refuses writes at other places than a write pointer.
    HostManaged,
    /// The drive hides its bands.
    DriveManaged,
}

/// Characteristics that a drive reports, which need not be true.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Told {
    /// Kind of zones.
    pub zoned: Option<Zoned>,
    /// Whether the medium rotates.
    pub rotational: Option<bool>,
    /// Revolutions a minute.
    pub rpm: Option<u32>,
}

/// A device or a file. Calls come from several threads at once, and may never return.
pub trait Medium: Send + Sync {
    /// Name for people.
    fn name(&self) -> String;

    /// Reported size in bytes.
    fn bytes(&self) -> u64;

    /// Reads; returns the number of bytes read.
    ///
    /// # Errors
    /// The system's error.
    fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes; returns the number of bytes written. With `through`, returns only when they are on the medium.
    ///
    /// # Errors
    /// The system's error.
    fn write(&self, at: u64, data: &[u8], through: bool) -> io::Result<usize>;

    /// Returns when every acknowledged write is on the medium.
    ///
    /// # Errors
    /// The system's error.
    fn flush(&self) -> io::Result<()>;

    /// Whether the medium still exists; called after an error.
    fn exists(&self) -> bool {
        true
    }

    /// Characteristics that the medium reports.
    fn told(&self) -> Told {
        Told::default()
    }

    /// Switches the volatile write cache; returns whether it is in that state now.
    fn set_volatile_cache(&self, _on: bool) -> bool {
        false
    }

    /// Switches read-ahead; returns whether it is in that state now.
    fn set_look_ahead(&self, _on: bool) -> bool {
        false
    }
}
