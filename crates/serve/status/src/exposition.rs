//! Metrics of one scrape, made of values that are counted elsewhere.

use prometheus::core::Collector;
use prometheus::{CounterVec, Encoder, GaugeVec, Opts, Registry, TextEncoder};

/// Values, each with the values of its labels.
pub(crate) type Values<'a> = Vec<(Vec<&'a str>, f64)>;

/// The metrics of one scrape.
#[derive(Default)]
pub(crate) struct Exposition(Registry);

impl Exposition {
    /// Adds a value that rises and falls.
    pub(crate) fn gauge(&self, name: &str, help: &str, value: f64) {
        self.gauges(name, help, &[], vec![(Vec::new(), value)]);
    }

    /// Adds values that rise and fall, by label.
    pub(crate) fn gauges(&self, name: &str, help: &str, labels: &[&str], values: Values<'_>) {
        let gauges = GaugeVec::new(Opts::new(name, help), labels);
        self.add(gauges, |gauges| {
            for (labels, value) in &values {
                gauges.with_label_values(labels).set(*value);
            }
        });
    }

    /// Adds a value that only rises.
    pub(crate) fn counter(&self, name: &str, help: &str, value: u64) {
        self.counters(name, help, &[], vec![(Vec::new(), value as f64)]);
    }

    /// Adds values that only rise, by label.
    pub(crate) fn counters(&self, name: &str, help: &str, labels: &[&str], values: Values<'_>) {
        let counters = CounterVec::new(Opts::new(name, help), labels);
        self.add(counters, |counters| {
            for (labels, value) in &values {
                counters.with_label_values(labels).inc_by(*value);
            }
        });
    }

    fn add<T: Collector + 'static>(&self, metric: prometheus::Result<T>, fill: impl FnOnce(&T)) {
        let added = metric.and_then(|metric| {
            fill(&metric);
            self.0.register(Box::new(metric))
        });
        if let Err(error) = added {
            tracing::error!(%error, "a metric");
        }
    }

    /// These metrics and those of `other`, in Prometheus' text format.
    pub(crate) fn text(self, other: &Registry) -> Vec<u8> {
        let mut text = Vec::new();
        let mut families = other.gather();
        families.extend(self.0.gather());
        if let Err(error) = TextEncoder::new().encode(&families, &mut text) {
            tracing::error!(%error, "the metrics");
        }
        text
    }
}
