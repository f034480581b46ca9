//! All of these tests are one program: each links everything below it.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

mod caveat;
mod common;
mod flash;
mod look_ahead;
mod mixed_cleaning;
mod noise;
mod paced;
mod profiles;
mod shapes;
mod state;
mod state_file;
mod timed;
mod waiting;
mod zns;
mod zoned_disk;
