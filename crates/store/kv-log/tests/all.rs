//! All of these tests are one program: each links everything below it.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

mod crash;
mod database;
#[path = "../../kv/engine-tests/moment.rs"]
mod moment;
mod support;
