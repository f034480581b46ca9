//! What a device in real time is made of: something with bytes, whose calls block.

use serde::Serialize;
use std::io;

/// The kinds of zones that a drive may say it has (the ZONED field of its characteristics).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Zoned {
    /// It takes writes elsewhere than at a write pointer.
    HostAware,
    /// It refuses them.
    HostManaged,
    /// It hides its bands.
    DriveManaged,
}

/// What a drive says of itself, which need not be true.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Told {
    /// Its zones.
    pub zoned: Option<Zoned>,
    /// Whether something turns in it.
    pub rotational: Option<bool>,
    /// Turns a minute.
    pub rpm: Option<u32>,
}

/// A device or a file. Calls come from several threads at once, and may never come back.
pub trait Medium: Send + Sync {
    /// What people call it.
    fn name(&self) -> String;

    /// Bytes that it says it has.
    fn bytes(&self) -> u64;

    /// Reads; how many bytes.
    ///
    /// # Errors
    /// What the system says.
    fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes; how many bytes. `through`: answers only when they are on the medium.
    ///
    /// # Errors
    /// What the system says.
    fn write(&self, at: u64, data: &[u8], through: bool) -> io::Result<usize>;

    /// Answers when everything that was acknowledged is on the medium.
    ///
    /// # Errors
    /// What the system says.
    fn flush(&self) -> io::Result<()>;

    /// Whether it is still there; asked after an error.
    fn exists(&self) -> bool {
        true
    }

    /// What it says of itself.
    fn told(&self) -> Told {
        Told::default()
    }

    /// Switches its volatile write cache; whether it is in that state now.
    fn set_volatile_cache(&self, _on: bool) -> bool {
        false
    }

    /// Switches its reading ahead; whether it is in that state now.
    fn set_look_ahead(&self, _on: bool) -> bool {
        false
    }
}
