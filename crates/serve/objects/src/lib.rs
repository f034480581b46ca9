//! Parts of a server of objects between protocol and store, independent of S3 and of any other protocol.
//!
//! [`serve`] accepts connections and limits them by [`Peers`]. [`Inbound`] times and counts a request's body. A
//! [`Line`] gives a limited number of requests their [`Permit`]s, and makes slow bodies give way. [`receive`] writes
//! a body to the drive, [`Download`] reads one from it, both in bounded memory, with store calls on the threads of
//! [`Blocking`].

mod blocking;
mod body;
mod buffers;
mod classes;
mod connection;
pub mod digest;
mod download;
mod flow;
mod lanes;
mod md5;
mod md5_blocks;
mod metered;
mod peers;
mod permits;
mod quotas;
mod server;
pub mod small_file;
mod tls;
mod turns;
mod upload;

pub use blocking::{Blocking, NotRun, Running};
pub use body::{BodyFailure, Inbound, Pace};
pub use buffers::Buffer;
pub use classes::Classes;
pub use connection::{Connection, Unread};
pub use download::{Download, ReadError, read_piece, take_piece};
pub use flow::Flow;
pub use metered::{Meter, Metered};
pub use peers::{Peer, Peers};
pub use permits::{Line, Permit, Pressure};
pub use quotas::{Account, Quota, Quotas, Refused};
pub use server::{Bounds, Listener, ServeError, serve};
pub use tls::{Tls, TlsError};
pub use upload::{Expected, Pieces, ReceiveError, Received, Source, receive};
