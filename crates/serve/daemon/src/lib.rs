//! A served drive: its S3 endpoint and its control socket ([`serve`]), the keys of the endpoint ([`keys`]), and what its
//! caches take ([`memory`]).

mod client;
pub mod keys;
pub mod memory;
mod serve;

pub use client::resolve;
pub use serve::{Daemon, serve};
