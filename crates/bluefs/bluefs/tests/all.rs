//! All integration tests of `bluefs` in one program: each test binary would link every crate below again.

// Tests may panic: a failed `unwrap` is a failed test.
#![allow(clippy::unwrap_used)]

mod cleaning;
mod compaction;
mod corners;
mod crash;
mod damage;
mod failing_zones;
mod files;
mod format_document;
mod free_space;
mod last_zones;
mod model;
mod mount_reads;
mod observing;
mod pairs;
mod reading;
mod salvage;
mod small_drives;
mod space;
mod stuck;
mod superblocks;
mod support;
mod trouble;
mod unreset;
mod unsynced;
mod worn_out;
