//! Archives of random histories: what is restored is what there was, and of a damaged archive nothing wrong is.

// A failed unwrap is a failed test. What is shared with other tests has more than these need.
#![allow(clippy::unwrap_used, dead_code)]

#[path = "../../../store/tests/lockstep/call.rs"]
mod call;
#[path = "../../../store/tests/lockstep/carry_out.rs"]
mod carry_out;
#[path = "../../../store/tests/common/mod.rs"]
mod common;
#[path = "../../../store/tests/lockstep/deal.rs"]
mod deal;
#[path = "../../../store/tests/lockstep/step.rs"]
mod step;
#[path = "../../../store/tests/lockstep/world.rs"]
mod world;

mod chains;
mod damaged_archives;
mod damaged_objects;
mod imports;
mod interrupted;
mod large;
mod moments;
mod other_programs;
mod stores;
