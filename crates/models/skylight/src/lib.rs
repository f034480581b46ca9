//! Skylight: what is inside a drive-managed SMR disk, found out by how long it takes
//! (main document, chapter 2).
//!
//! Each test is a workload and, apart from it, what follows from the latencies: a pure function.
//! Where the paper looked at graphs or at the head through a window, statistics decide, and further
//! workloads.

pub mod cliff;
pub mod examine;
mod fill;
pub mod finding;
pub mod html;
mod look;
pub mod meaning;
pub mod place;
pub mod reading;
pub mod report;
mod row;
pub mod samples;
pub mod statistics;
pub mod step;
mod strokes;
pub mod target;
pub mod test;
pub mod track;

pub use drive_model::Random;
pub use examine::{Observations, Options, examine, examine_for_figures};
pub use fill::Filled;
pub use finding::Findings;
pub use look::{Asked, Looked, Value, look};
pub use step::Unfinished;
pub use target::{Model, Target, TargetError};
