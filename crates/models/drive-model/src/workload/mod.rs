//! Workloads for a model: their requests, and the counters of their completions.

mod counters;
mod requests;
mod run;
mod stretches;

pub use counters::{Answered, Counters, Latencies};
pub use requests::{NoRequests, Order, Requests, Workload};
pub use run::{Length, Ran, run};
pub use stretches::{Rates, Stretches};
