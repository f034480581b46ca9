//! S3 on the object store.
//!
//! `s3s` speaks the protocol and verifies signatures; this crate maps buckets to collections,
//! objects to objects and multipart uploads to objects that are assembled, and checks digests and
//! conditions. The crate `objects` keeps memory and time bounded whatever clients send. See `docs/s3.md`.

mod aside;
mod asked;
mod attributes;
mod auth;
mod body;
mod buckets;
mod chunked;
mod collections;
mod compressible;
mod conditions;
mod config;
mod copy;
mod dates;
mod digest;
mod documents;
mod download;
mod encoded_words;
mod errors;
mod expiry;
mod front;
mod gateway;
mod head;
mod hosts;
mod keyring;
mod lifecycle;
mod lifecycle_rules;
mod listing;
mod lock;
mod model;
mod multipart;
mod names;
mod object;
mod object_listings;
mod object_lock;
mod operations;
mod pages;
pub mod plain;
mod ranges;
mod record;
mod refusals;
mod removal;
mod rights;
mod sent_document;
mod server;
mod service;
mod tagging;
mod tags;
#[cfg(test)]
mod test_bucket;
mod upload;
mod version_listings;
mod versions;
mod xml;

pub use config::{ClientQuotas, Clock, Config, Limits, Random};
pub use keyring::{Credentials, Key, Keyring};
pub use names::why_not_seen;
pub use objects::{Listener, Quota, ServeError, Tls, TlsError, small_file};
pub use record::{ACCESS, AUDIT};
pub use rights::{Buckets, Grant, Right, Rights};
pub use server::Server;
