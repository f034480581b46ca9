//! Compiles the bridge to Debian's librocksdb.

use std::env;

fn main() {
    let root = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let file_system = env::var("DEP_ZONESTORE_ROCKSDB_FILE_SYSTEM_INCLUDE").unwrap_or_default();
    cxx_build::bridge("src/bridge.rs")
        .std("c++17")
        .include(format!("{root}/cpp"))
        .include(file_system)
        .file("cpp/database.cc")
        .flag("-Wall")
        .compile("zonestore_kv");
    println!("cargo::rustc-link-lib=dylib=rocksdb");
    for file in [
        "cpp/background.h",
        "cpp/database.cc",
        "cpp/database.h",
        "cpp/deleted_rows.h",
        "cpp/rows.h",
        "src/bridge.rs",
    ] {
        println!("cargo::rerun-if-changed={file}");
    }
}
