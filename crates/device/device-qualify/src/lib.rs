//! Tests that qualify a zoned drive before it is trusted with data: the speed of its commands ([`speed`]), and
//! whether flushed data survives a loss of power ([`power`]).
//!
//! The tests destroy all data on the drive.

mod latencies;
pub mod power;
pub mod report;
pub mod speed;

pub use latencies::Latencies;
