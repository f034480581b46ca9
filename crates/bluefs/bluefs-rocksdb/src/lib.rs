//! A `rocksdb::FileSystem` over the C ABI of BlueFS. The C++ in `cpp/` only translates, and registers
//! itself for the scheme `zonestore:///path/of/drive`; what Rust needs of the ABI is passed on.

pub use bluefs_c::*;
