//! zonestore
fn main() {}
