//! All of these tests are one program: each links everything below it.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

mod file_format;
mod host_power;
mod lockstep;
mod power_cut;
