//! All of these tests are one program: each links everything below it.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

mod damaged;
mod foreign;
mod full;
mod lockstep;
mod support;
mod together;
mod unreadable;
