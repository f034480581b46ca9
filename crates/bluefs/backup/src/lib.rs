//! All files of a BlueFS as one tar archive, which any tar reads (docs/format/backup.md).
//!
//! The last file of the archive has the checksums of all others. [`pack`] compares a file with the drive's
//! checksums before anything of it goes into the archive, and [`restore`] an archive with its own before
//! anything of it gets its name. [`tree`] has what either needs of a file system.

mod error;
pub mod format;
mod pack;
mod restore;
mod summed;
pub mod tree;
pub mod unpack;

pub use error::{Error, Result};
pub use pack::{Packer, pack};
pub use restore::{remove_left, restore};
