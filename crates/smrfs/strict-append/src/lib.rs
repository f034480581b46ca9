//! A POSIX file system that only appends to the bands of a zoned drive (Suresh, Gibson and Ganger, CMU-PDL-12-105;
//! "Strict Append-SMRfs" in the thesis on Caveat-Scriptor, section 2.2).
//!
//! Data goes to sequential zones, out of place; a cleaner gives dead space back. All metadata is in memory, and
//! durable as checkpoints and a journal in conventional zones, or in the first sequential ones where there are none.
//! Every block has a checksum. A crash leaves the state at some commit, and no earlier one than the last sync.
//!
//! Memory: the buffer within its bound, and metadata: about 300 bytes an inode with its name, 150 bytes an extent,
//! and 4 bytes a block of data.

mod attributes;
mod bands;
mod check;
mod cleaner;
mod core;
mod data;
mod dirty;
mod error;
mod frame;
mod fs;
mod inode;
mod layout;
mod log;
mod map;
mod names;
mod options;
mod record;
mod state;

pub use attributes::{SetAttributes, SetTime, SetXattr};
pub use check::Findings;
pub use core::Counts;
pub use error::{Error, Result};
pub use frame::VERSION;
pub use fs::{FileSystem, Listed, Space, is_there, shape};
pub use inode::{Attributes, ROOT, Time};
pub use layout::Shape;
pub use names::{NewInode, Rename};
pub use options::{MkfsOptions, MountOptions, Policy};
