//! Exports a model as a block device: the server side of the network block device protocol (NBD, `doc/proto.md` of
//! the reference implementation), with fixed newstyle handshake, simple replies, reads, writes, flushes, FUA and
//! trims.
//!
//! [`protocol`] is pure: bytes in, bytes out. [`serve`] runs it over one connection for a [`Session`], which may have
//! many requests under way and answer them in any order. [`Listener`] has the sockets; a [`Device`] answers at the
//! pace of a model, with data in a file (`block_device`).

mod client;
mod device;
mod listener;
pub mod protocol;
mod server;

pub use device::Device;
pub use listener::{Address, Listener, Stream};
pub use server::{Answer, ServeError, Session, serve};
