//! The way to a collector.

use bytes::Bytes;
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A collector that takes longer gets the next spans, and not these.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sends from the exporter's own thread, which may block.
#[derive(Debug)]
pub struct Client {
    agent: ureq::Agent,
    fails: AtomicBool,
}

impl Default for Client {
    fn default() -> Self {
        let config = ureq::Agent::config_builder().timeout_global(Some(PATIENCE));
        Self {
            agent: config.build().new_agent(),
            fails: AtomicBool::new(false),
        }
    }
}

impl Client {
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
        let to = request.uri().to_string();
        let sent = self.send(request);
        // Once, and not for each batch.
        let failed = self.fails.swap(sent.is_err(), Ordering::Relaxed);
        match &sent {
            Err(error) if !failed => {
                tracing::warn!(%to, %error, "spans cannot be sent; they are dropped until they can");
            }
            Ok(_) if failed => tracing::info!(%to, "spans are sent again"),
            _ => {}
        }
        Ok(sent?)
    }
}
