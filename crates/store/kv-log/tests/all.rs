//! All integration tests of `kv-log` in one program: each test binary would link every crate below again.

// Tests may panic: a failed `unwrap` is a failed test.
#![allow(clippy::unwrap_used)]

mod crash;
mod database;
#[path = "../../kv/engine-tests/moment.rs"]
mod moment;
mod support;
