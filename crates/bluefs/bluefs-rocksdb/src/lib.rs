//! A `rocksdb::FileSystem` over the C ABI of BlueFS.
//!
//! The C++ in `cpp/` only translates, and registers the scheme `zonestore:///path/of/drive`; this crate re-exports the
//! part of the ABI that Rust code needs.

pub use bluefs_c::*;
