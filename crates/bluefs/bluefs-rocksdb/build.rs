//! Compiles the C++ half against Debian's librocksdb.

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
        .include(root.join("cpp"))
        .file(root.join("cpp/rocksdb_file_system.cc"))
        .file(root.join("cpp/default_file_system.cc"))
        // The registration is a static initialiser that nothing refers to.
        .link_lib_modifier("+whole-archive")
        .compile("zonestore_rocksdb_file_system");
    println!("cargo::rustc-link-lib=dylib=rocksdb");
    println!("cargo::metadata=include={}", root.join("cpp").display());
    for file in [
        "cpp/rocksdb_file_system.cc",
        "cpp/default_file_system.cc",
        "cpp/rocksdb_file_system.h",
    ] {
        println!("cargo::rerun-if-changed={file}");
    }
    println!("cargo::rerun-if-changed={include}/zonestore/bluefs.h");
}
