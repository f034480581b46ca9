//! Zoned drives behind one narrow trait: in memory, in a file of the host, and zoned devices of the host.
//!
//! Wrappers compose around any of them. The emulated drives follow one rule book ([`rules`]), which enforces the
//! same rules as a real drive and returns the standard's errors.

mod access;
mod drive;
pub mod erase;
pub mod facts;
pub mod file;
mod keeps;
pub mod linux;
pub mod memory;
pub mod nvme;
pub mod profile;
mod rings;
pub mod rules;
mod shape_request;
mod sparse;
pub mod wrap;
mod zoned_device;

pub use drive::{Drive, DriveError, is_host_device, locked_files};
pub use file::{FileDrive, FileDriveError};
pub use keeps::Keeps;
pub use linux::{HostDriveError, LinuxDrive};
pub use memory::MemoryDrive;
pub use nvme::NvmeDrive;
pub use shape_request::{ShapeError, ShapeRequest};
pub use wrap::power_cut::PowerCut;
pub use wrap::{changed, divided, faults, kept, part, power_cut, stats, trace, watch, zone_damage};
pub use zoned_device::ZonedDevice;
