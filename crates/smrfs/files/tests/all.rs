//! All of these tests are one program: each links everything below it.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

mod cleaning;
mod common;
mod crafted;
mod crash;
mod failures;
mod format;
mod lockstep;
mod nearly_full;
mod preallocation;
mod stuck;
mod together;
mod unread;
mod whole_files;
mod zones;
