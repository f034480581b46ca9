//! Benchmarks: the store beside a plain drive, and BlueFS beside the host's file system.
//!
//! Each alternates between the two in many short rounds, because the speed of a shared disk varies more over minutes
//! than between such rounds. The results are medians of the rounds' ratios.

pub mod append;
pub mod bluefs;
mod cold;
mod cpu;
pub mod damage;
mod db_bench;
mod error;
pub mod ingest;
mod median;
mod memory;
mod paced;
mod place;
mod raw;
pub mod rocksdb;
pub mod scale;
mod together;
mod watch;

pub use error::{Error, Result};
pub use place::Shape;
pub use watch::{Terminal, Watch};
