//! Stores all files of a BlueFS in one tar archive, which any tar program can read (docs/format/backup.md).
//!
//! The last file of the archive has the checksums of all others. `pack` verifies a file by the drive's checksums
//! before it adds it to the archive, and `restore` verifies the whole archive before its files get their names.
//! [`tree`] has the operations on files that both need.

mod error;
pub mod format;
mod pack;
mod restore;
mod summed;
pub mod tree;
pub mod unpack;

pub use error::{Error, Result};
pub use pack::{Packer, pack};
pub use restore::{Left, compare, end_left, restore};
