//! What requests did and how long that took, as OpenTelemetry spans sent to a collector (OTLP over HTTP).
//!
//! Spans are those of `tracing` with the target [`TARGET`]: a request's, made here, and below it the store's. Where
//! nobody collects, each costs one comparison. A request never waits for the collector: spans go to a queue with a
//! bound, from which a thread of its own sends them, and what does not fit is dropped.

mod address;
mod client;
mod collector;
mod counted;
mod parent;

pub use address::{Address, without_user};
pub use collector::{Collector, CollectorError, Ratio};
pub use parent::{continue_from, rename};

/// The target of spans, which no log shows.
pub const TARGET: &str = "trace";
