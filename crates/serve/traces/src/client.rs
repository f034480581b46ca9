//! The way to a collector.

use crate::address::without_user;
use crate::counted::Counts;
use bytes::Bytes;
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A collector that takes longer gets the next spans, and not these.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the end of the process waits for.
pub(crate) enum Progress {
    /// The collector has taken some spans.
    Taken,
    /// There are no more.
    Ended,
}

/// What is known of a collector. A copy is the same.
#[derive(Clone, Default, Debug)]
pub(crate) struct Knowledge {
    fails: Arc<AtomicBool>,
    told: Arc<Mutex<Option<Sender<Progress>>>>,
}

impl Knowledge {
    /// Whether it did not take what it was sent last.
    pub fn fails(&self) -> bool {
        self.fails.load(Ordering::Relaxed)
    }

    /// `to` is told each time that it takes something, from now on.
    pub fn tell(&self, to: Sender<Progress>) {
        *self.told() = Some(to);
    }

    /// What it did, for what it did before.
    fn learn(&self, fails: bool) -> bool {
        if !fails && let Some(told) = self.told().as_ref() {
            // Perhaps nobody waits any more.
            let _ = told.send(Progress::Taken);
        }
        self.fails.swap(fails, Ordering::Relaxed)
    }

    fn told(&self) -> MutexGuard<'_, Option<Sender<Progress>>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends from the exporter's own thread, which may block.
#[derive(Debug)]
pub(crate) struct Client {
    agent: ureq::Agent,
    knowledge: Knowledge,
    counts: Counts,
}

impl Client {
    pub fn new(knowledge: Knowledge, counts: Counts) -> Self {
        let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE));
        Self {
            agent: config.build().new_agent(),
            knowledge,
            counts,
        }
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ureq::Error> {
        let (head, mut body) = self
            .agent
            .run(request.map(|body| body.to_vec()))?
            .into_parts();
        Ok(Response::from_parts(head, body.read_to_vec()?.into()))
    }
}

#[async_trait::async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let to = without_user(&request.uri().to_string());
        let sent = self.send(request);
        // Once, and not for each batch.
        let failed = self.knowledge.learn(sent.is_err());
        match &sent {
            Err(error) if !failed => {
                tracing::warn!(%to, %error, "spans cannot be sent; they are dropped until they can");
            }
            Ok(_) if failed => tracing::info!(%to, "spans are sent again"),
            _ => {}
        }
        let answer = sent?;
        self.counts.reject(rejected(answer.body()));
        Ok(answer)
    }
}

/// The number of spans that an answer of success rejects. The exporter only logs it.
fn rejected(answer: &[u8]) -> u64 {
    let answer = ExportTraceServiceResponse::decode(answer).unwrap_or_default();
    let partly = answer.partial_success.unwrap_or_default();
    partly.rejected_spans.try_into().unwrap_or(0)
}
