//! The control socket of a served drive. The daemon that holds the drive's lock has it alone; other processes send it
//! requests, by HTTP/1.1 on a Unix socket beside the drive.
//!
//! [`ControlServer`] is the daemon's side and [`Client`] the other; [`api`] has the wire types. [`DriveCalls`] on a
//! [`Socket`] at any path offers the same calls for many drives in one process. [`DriveView`] and [`StoreView`] give
//! the same answers whether this process has the drive open or a daemon has. Only the user who runs the daemon can
//! connect (mode 0600). Store and drive calls never run on the reactor.

pub mod api;
mod asked;
mod backup;
mod calls;
mod client;
mod daemon;
mod drained;
mod drive_calls;
mod drive_view;
mod error;
mod failure;
mod frames;
mod handover;
mod opened;
mod sent;
mod server;
mod socket;
mod store_view;
mod whole_request;

pub use calls::Tell;
pub use client::Client;

pub use drive_calls::DriveCalls;
pub use drive_view::DriveView;
pub use error::{ClientError, OpenError, ServerError, ViewError};
pub use failure::Failure;
pub use frames::{frame, frames};
pub use handover::{HandedStream, Handover};
pub use opened::Opened;
pub use sent::parse;
pub use server::{ControlServer, Socket};
pub use store_view::StoreView;
