//! All integration tests of `zeafs` in one program: each test binary would link every crate below again.

// Tests may panic: a failed `unwrap` is a failed test.
#![allow(clippy::unwrap_used)]

mod damage;
mod format_document;
mod full_metadata;
mod histories;
mod host;
mod pairs;
mod stuck;
mod support;
mod syncs;
mod zones;
