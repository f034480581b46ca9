//! A served drive: its S3 endpoint and its control socket ([`serve`]), its configuration ([`settings`]) and what of it is
//! read again meanwhile ([`Live`]), the key beside the drive ([`keys`]), and what its caches take ([`memory`]). Drives of
//! a node of OpenStack Swift, many in one process: [`DriveServer`].

mod client;
mod drives;
pub mod keys;
mod live;
pub mod memory;
mod notify;
mod private;
mod serve;
pub mod settings;
mod signals;
mod stamps;

pub use client::{reachable, resolve};
pub use drives::{DriveServer, ServedDrive};
pub use live::{Judge, Live};
pub use private::FileError;
pub use serve::{Daemon, serve};
