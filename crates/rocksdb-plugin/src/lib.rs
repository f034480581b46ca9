//! `libzonestore_rocksdb.so`: preloaded into an unmodified RocksDB program, it makes the scheme
//! `zonestore:///path/of/drive` known to `--fs_uri` and `--env_uri`. All of it is in `bluefs-rocksdb`.

pub use bluefs_rocksdb::*;
