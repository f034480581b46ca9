//! Serves a drive (`serve`), or many drives of a node of OpenStack Swift in one process ([`DriveServer`]).
//!
//! `serve` runs its S3 endpoint and its control socket. The other parts are its configuration ([`settings`]), the
//! part of it that is reloaded while it runs ([`Live`]), the key beside the drive ([`keys`]), and the memory of its
//! caches ([`memory`]).

mod client;
mod drives;
mod fullness;
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
pub use serve::{Daemon, Ended, serve};
pub use signals::how_to_stop;
