//! A workload on a model: its requests, and what is counted of their answers.

mod counters;
mod requests;
mod run;
mod stretches;

pub use counters::{Answered, Counters, Latencies};
pub use requests::{NoRequests, Order, Requests, Workload};
pub use run::{Length, Ran, run};
pub use stretches::{Rates, Stretches};
