//! What somebody wants to know of a zoned drive before it is trusted with data: how fast its commands are
//! ([`speed`]), and whether what it has flushed is there when its power has gone ([`power`]).
//!
//! Everything on the drive is lost.

mod latencies;
pub mod power;
pub mod report;
pub mod speed;

pub use latencies::Latencies;
