//! Skylight infers the internals of a drive-managed SMR disk from the latencies of its requests (main document,
//! chapter 2).
//!
//! Each test consists of a workload and, separate from it, a pure function that draws conclusions from the latencies.
//! Where the paper inspected graphs, or the head through a window, statistics and further workloads decide.

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
