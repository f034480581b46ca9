//! Where spans are collected.

use crate::TARGET;
use crate::address::Address;
use crate::client::{Client, Knowledge, Progress};
use crate::counted::Counts;
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchSpanProcessor, Sampler, SdkTracerProvider};
use std::fmt;
use std::str::FromStr;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use thiserror::Error;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::{Layer, Registry};

/// How long the end of the process waits for each answer of the collector while the last spans are sent.
const LAST: Duration = Duration::from_millis(600);
/// The same where the collector failed before.
const LAST_OF_FAILING: Duration = Duration::from_millis(100);
/// How long the exporter may go on at the end while the collector answers: it has a few batches at most.
const LONGEST: Duration = Duration::from_secs(60);

/// Why spans are not sent: settings that the environment (OTEL_…) may have changed.
#[derive(Debug, Error)]
#[error("the exporter of spans: {0}; look for OTEL_… in the environment")]
pub struct CollectorError(String);

/// Which part of all requests is traced, from 0 to 1. What a client traces itself is, too, if it says so.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ratio(f64);

impl Default for Ratio {
    fn default() -> Self {
        Self(1.0)
    }
}

impl FromStr for Ratio {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(Self(ratio)),
            _ => Err("a part of all requests is meant, from 0 to 1"),
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Sends spans until it is stopped.
pub struct Collector {
    provider: SdkTracerProvider,
    knowledge: Knowledge,
    counts: Counts,
}

impl Collector {
    /// Begins to send to the collector at `address`; the second is what gathers spans.
    ///
    /// # Errors
    /// The exporter does not take its settings.
    pub fn start(
        address: &Address,
        ratio: Ratio,
    ) -> Result<(Self, Box<dyn Layer<Registry> + Send + Sync>), CollectorError> {
        let (knowledge, counts) = (Knowledge::default(), Counts::default());
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Client::new(knowledge.clone(), counts.clone()))
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(address.as_str())
            .build()
            .map_err(|error| CollectorError(error.to_string()))?;
        let queue = BatchSpanProcessor::builder(counts.of(exporter)).build();
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let resource = Resource::builder()
            .with_service_name("zonestore")
            .with_attribute(version);
        let by_ratio = Sampler::TraceIdRatioBased(ratio.0);
        let provider = SdkTracerProvider::builder()
            .with_span_processor(counts.of(queue))
            .with_sampler(Sampler::ParentBased(Box::new(by_ratio)))
            .with_resource(resource.build())
            .build();
        let layer = tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("zonestore"))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_level(false)
            .with_tracked_inactivity(false);
        let ours = filter_fn(|metadata| metadata.target() == TARGET);
        let collector = Self {
            provider,
            knowledge,
            counts,
        };
        Ok((collector, layer.with_filter(ours).boxed()))
    }

    /// Sends what is left as long as the collector takes it, and says how many spans it never took.
    pub fn stop(self) {
        let Self {
            provider,
            knowledge,
            counts,
        } = self;
        let (tell, told) = mpsc::channel();
        knowledge.tell(tell.clone());
        // The exporter tries for seconds where the collector fails. The process ends without waiting for that.
        let shut_down = move || {
            let _ = provider.shutdown_with_timeout(LONGEST);
            let _ = tell.send(Progress::Ended);
        };
        if let Err(error) = thread::Builder::new().spawn(shut_down) {
            tracing::warn!(%error, "no thread can be started that sends the last spans");
        }
        let patience = match knowledge.fails() {
            true => LAST_OF_FAILING,
            false => LAST,
        };
        while let Ok(Progress::Taken) = told.recv_timeout(patience) {}
        let spans = counts.missing();
        if spans > 0 {
            tracing::warn!(
                spans,
                "the collector has not taken all spans; these are lost"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_a_part_of_all() {
        assert_eq!("0.25".parse(), Ok(Ratio(0.25)));
        for none in ["", "-0.1", "1.1", "NaN", "10%"] {
            assert!(none.parse::<Ratio>().is_err(), "{none}");
        }
    }
}
