//! How many spans ended, and how many of them a collector took.

use opentelemetry::Context;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanExporter, SpanProcessor};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Spans counted. A copy counts the same.
#[derive(Clone, Default, Debug)]
pub(crate) struct Counts {
    ended: Arc<AtomicU64>,
    taken: Arc<AtomicU64>,
    rejected: Arc<AtomicU64>,
}

impl Counts {
    /// Those that no collector has taken: they wait, or are lost.
    pub fn missing(&self) -> u64 {
        let taken = self.taken.load(Relaxed);
        let taken = taken.saturating_sub(self.rejected.load(Relaxed));
        self.ended.load(Relaxed).saturating_sub(taken)
    }

    /// Counts spans that a collector rejected in an answer that says that it has taken them.
    pub fn reject(&self, spans: u64) {
        self.rejected.fetch_add(spans, Relaxed);
    }

    /// Counts what reaches `inner`, a queue or an exporter.
    pub fn of<T>(&self, inner: T) -> Counted<T> {
        let counts = self.clone();
        Counted { inner, counts }
    }
}

/// Counts what passes.
#[derive(Debug)]
pub(crate) struct Counted<T> {
    inner: T,
    counts: Counts,
}

impl<P: SpanProcessor> SpanProcessor for Counted<P> {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.inner.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled() {
            self.counts.ended.fetch_add(1, Relaxed);
        }
        self.inner.on_end(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

impl<E: SpanExporter> SpanExporter for Counted<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len() as u64;
        self.inner.export(batch).await?;
        self.counts.taken.fetch_add(count, Relaxed);
        Ok(())
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}
