//! Tells the C++ that is built on this crate where the header is.

use std::path::Path;

fn main() {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    println!("cargo::metadata=include={}", include.display());
    println!("cargo::rerun-if-changed=build.rs");
}
