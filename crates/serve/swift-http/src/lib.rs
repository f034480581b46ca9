//! HTTP calls of OpenStack Swift's back end on one drive: [`SwiftCalls::router`]. `docs/daemon.yaml` describes them.
//!
//! Data is written to the drive before it has a name (staged, see `held`), so that a client learns its MD5 before
//! it sends the metadata. Data that is being read stays readable while its object is replaced (opened). Both are
//! dropped when they are not used for a while. Store calls, which block, run on threads of their own.

mod api;
mod body;
mod calls;
mod crowd;
mod data;
mod failure;
mod handed;
mod held;
mod listings;
mod path;
mod receiving;
mod sending;
mod state;

pub use state::SwiftCalls;
