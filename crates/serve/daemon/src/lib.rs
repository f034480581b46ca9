//! A served drive: its S3 endpoint and its control socket ([`serve`]), its configuration ([`settings`]) and what of it is
//! read again meanwhile ([`Live`]), the key beside the drive ([`keys`]), and what its caches take ([`memory`]).

mod client;
pub mod keys;
mod live;
pub mod memory;
mod notify;
mod private;
mod serve;
pub mod settings;
mod stamps;

pub use client::{reachable, resolve};
pub use live::Live;
pub use private::FileError;
pub use serve::{Daemon, serve};
