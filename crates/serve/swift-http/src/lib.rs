//! The calls of OpenStack Swift's back end on one drive: [`SwiftCalls::router`]. `docs/daemon.yaml` describes them.
//!
//! Data goes to the drive before it has a name ([`held`]: staged), so that a writer learns its MD5 before it gives the
//! metadata; data that is read stays readable while its object is replaced (opened). Both are forgotten when nobody
//! asks for them. Calls that block run on threads of their own.

mod api;
mod body;
mod calls;
mod data;
mod failure;
mod held;
mod listings;
mod path;
mod state;

pub use state::SwiftCalls;
