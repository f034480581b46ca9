//! The tests of models, crashes, space, objects and stuck commands once more, with the small database.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used, clippy::duplicate_mod)]

#[path = "crash.rs"]
mod crash;
#[path = "model.rs"]
mod model;
#[path = "objects.rs"]
mod objects;
#[path = "space.rs"]
mod space;
#[path = "stuck.rs"]
mod stuck;
