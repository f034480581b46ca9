//! Where spans are collected.

use crate::TARGET;
use crate::client::{Client, Knowledge, Progress};
use crate::counted::Counts;
use http::Uri;
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

/// Where OTLP over HTTP takes spans if the address has no path.
const PATH: &str = "/v1/traces";
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

/// The address of a collector.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address(String);

impl FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const NONE: &str =
            "write the address of a collector: http://HOST:4318 or https://HOST/PATH";
        let uri: Uri = text.parse().map_err(|_| NONE)?;
        let is_known = matches!(uri.scheme_str(), Some("http" | "https"));
        let host = uri.host().filter(|host| is_known && !host.is_empty());
        let host = host.ok_or(NONE)?;
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let own = authority.rsplit_once('@').map_or(authority, |(_, own)| own);
        match own == host {
            true => terminal::check_host(host)?,
            false => terminal::check_address(own)?,
        }
        Ok(Self(match uri.path() {
            "" | "/" => format!("{}{PATH}", text.trim_end_matches('/')),
            _ => text.to_owned(),
        }))
    }
}

/// The text of an address as it may be shown and logged: dots stand for a user name and password, which are sent as basic
/// authentication.
pub fn without_user(text: &str) -> String {
    let split = text.split_once("://").and_then(|(scheme, rest)| {
        let authority = rest.split(['/', '?', '#']).next()?;
        let (user, _) = authority.rsplit_once('@')?;
        Some((scheme, &rest[user.len()..]))
    });
    match split {
        Some((scheme, at_host)) => format!("{scheme}://…{at_host}"),
        None => text.to_owned(),
    }
}

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
            .with_endpoint(&address.0)
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
    fn an_address_without_a_path_gets_that_of_the_protocol() {
        let address = |text: &str| text.parse::<Address>().ok().map(|address| address.0);
        for text in ["http://there:4318", "http://there:4318/"] {
            assert_eq!(
                address(text).as_deref(),
                Some("http://there:4318/v1/traces")
            );
        }
        let whole = "https://there/otlp";
        assert_eq!(address(whole).as_deref(), Some(whole));
        for none in [
            "",
            "there",
            "there:4318",
            "ftp://there",
            "http://",
            "http://a b",
        ] {
            assert_eq!(address(none), None, "{none}");
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        for (text, shown) in [
            (
                "http://me:se@cret@there:4318/a@b",
                "http://…@there:4318/a@b",
            ),
            ("https://me@[::1]", "https://…@[::1]"),
            ("http://there/a@b", "http://there/a@b"),
            ("64GiB", "64GiB"),
        ] {
            assert_eq!(without_user(text), shown);
        }
    }

    #[test]
    fn a_ratio_is_a_part_of_all() {
        assert_eq!("0.25".parse(), Ok(Ratio(0.25)));
        for none in ["", "-0.1", "1.1", "NaN", "10%"] {
            assert!(none.parse::<Ratio>().is_err(), "{none}");
        }
    }
}
