//! All integration tests of `zea` in one program: each test binary would link every crate below again.

// Tests may panic: a failed `unwrap` is a failed test.
#![allow(clippy::unwrap_used)]

mod crash;
mod damage;
mod failing;
mod format_document;
mod lockstep;
mod sharing;
mod support;
