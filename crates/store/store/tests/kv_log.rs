//! The store's tests that do not depend on RocksDB, once more with the small database. Bounds on the bytes that a mount
//! reads hold for RocksDB alone.

// Tests may panic: a failed `unwrap` is a failed test.
#![allow(clippy::unwrap_used)]

#[path = "bug_catalogue.rs"]
mod bug_catalogue;
mod common;
#[path = "crash.rs"]
mod crash;
#[path = "damage.rs"]
mod damage;
#[path = "fault_histories.rs"]
mod fault_histories;
#[path = "faults.rs"]
mod faults;
#[path = "hashed.rs"]
mod hashed;
#[path = "host_space.rs"]
mod host_space;
#[path = "model.rs"]
mod model;
#[path = "objects.rs"]
mod objects;
#[path = "omap.rs"]
mod omap;
#[path = "readable.rs"]
mod readable;
#[path = "repair/mod.rs"]
mod repair;
#[path = "space.rs"]
mod space;
#[path = "stuck.rs"]
mod stuck;
#[path = "summaries.rs"]
mod summaries;
#[path = "written_as.rs"]
mod written_as;
