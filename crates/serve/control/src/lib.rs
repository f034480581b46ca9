//! The control socket of a served drive. A drive has one daemon, which holds its lock; every other
//! process asks that one, by HTTP/1.1 on a Unix socket beside the drive.
//!
//! [`ControlServer`] is the daemon's side, [`Client`] the other; [`api`] is what they say to each other. Only the
//! user who runs the daemon can connect (mode 0600). Store and drive calls never run on the reactor.

pub mod api;
mod client;
mod error;
mod server;
mod socket;

pub use client::Client;
pub use error::{ClientError, ServerError};
pub use server::ControlServer;
