//! What a served drive tells of itself, under `/-/` of its endpoint: metrics for Prometheus, one document for
//! programs, and the page that shows it.
//!
//! [`Requests`] counts what clients ask, at one place of the front. A [`Look`] is the drive and its store at one moment;
//! it is taken when somebody asks, once a second at most. [`Document`] puts both together, and everything that is shown is
//! made of it. [`Status`] answers, and says who may ask ([`Access`]). See `docs/status-page.md` and `docs/metrics.md`.

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
