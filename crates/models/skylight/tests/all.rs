//! All of these tests are one program: each links everything below it.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

mod drives;
mod hidden;
mod page;
mod reading;
mod real_time;
mod simulated;
mod sizes;
mod structure;
