//! Compiles the C++ half against Debian's libleveldb.

use std::env;
use std::path::Path;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let include = env::var("DEP_ZONESTORE_BLUEFS_INCLUDE").unwrap_or_default();
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .flag("-Wall")
        .flag("-Wextra")
        .include(&include)
        .file(root.join("cpp/leveldb_env.cc"))
        .compile("zonestore_leveldb_env");
    println!("cargo::rustc-link-lib=dylib=leveldb");
    println!("cargo::rerun-if-changed=cpp/leveldb_env.cc");
    println!("cargo::rerun-if-changed={include}/zonestore/bluefs.h");
}
