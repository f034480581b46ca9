//! Status of a served drive, under `/-/` of its endpoint: metrics for Prometheus, a document for programs, and the
//! page that shows it.
//!
//! [`Requests`] counts requests of clients where all of them pass. A [`Look`] is a snapshot of the drive and its
//! store; one is taken on request, at most once a second. [`Document`] combines both, and everything shown is made of
//! it. [`Status`] answers requests and checks who may make them ([`Access`]). See `docs/status-page.md` and
//! `docs/metrics.md`.

mod access;
mod answer;
mod answer_body;
mod buckets;
mod codes;
mod document;
mod exposition;
mod history;
mod log;
mod look;
mod looker;

mod metrics;
mod orders;
mod page;
mod process;
mod requests;
mod status;
mod throttle;
mod words;

pub use access::{Access, Keys, Known};
pub use answer::{READ, other_method};
pub use answer_body::AnswerBody;
pub use document::Document;
pub use look::{Look, Served};
pub use requests::{Answering, CLIENT_LEFT, Requests};
pub use status::Status;
pub use words::lines;
