//! `libzonestore_rocksdb.so`: preloaded into an unmodified RocksDB program, it makes the scheme
//! `zonestore:///path/of/drive` known to `--fs_uri` and `--env_uri`. All of it is in `bluefs-c`.

pub use bluefs_c::*;
