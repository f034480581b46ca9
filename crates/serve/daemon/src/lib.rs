//! A served drive: its S3 endpoint and its control socket ([`serve`]), and the keys of the endpoint ([`keys`]).

mod client;
pub mod keys;
mod serve;

pub use serve::{Daemon, serve};
