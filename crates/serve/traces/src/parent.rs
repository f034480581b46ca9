//! Whose part a request is: the W3C's header `traceparent`.

use http::HeaderMap;
use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Makes a span part of the trace that the headers name, if they name one.
pub fn continue_from(span: &Span, headers: &HeaderMap) {
    // Nobody collects.
    if span.is_disabled() {
        return;
    }
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(parent) = text("traceparent").and_then(|parent| read(parent, text("tracestate"))) {
        // It cannot be refused here: the span is new.
        let _ = span.set_parent(Context::new().with_remote_span_context(parent));
    }
}

/// Gives a span another name: what is asked is known only when the request was read.
pub fn rename(span: &Span, name: &'static str) {
    if !span.is_disabled() {
        span.context().span().update_name(name);
    }
}

/// `VERSION-TRACE-SPAN-FLAGS` in lower hexadecimal digits; a later version may have more behind that.
fn read(parent: &str, state: Option<&str>) -> Option<SpanContext> {
    let mut parts = parent.trim().split('-');
    let mut digits = |length: usize| {
        let part = parts.next().filter(|part| part.len() == length)?;
        let is_known = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
        part.bytes().all(is_known).then_some(part)
    };
    let (version, trace, span, flags) = (digits(2)?, digits(32)?, digits(16)?, digits(2)?);
    let has_more = parts.next().is_some();
    if version == "ff" || (version == "00" && has_more) {
        return None;
    }
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?) & TraceFlags::SAMPLED;
    let state = state.and_then(|state| state.parse::<TraceState>().ok());
    let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
    let context = SpanContext::new(trace, span, flags, true, state.unwrap_or_default());
    context.is_valid().then_some(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    #[test]
    fn a_parent_is_read() {
        let context = read(&format!("00-{TRACE}-{SPAN}-01"), Some("a=b")).unwrap();
        assert_eq!(context.trace_id().to_string(), TRACE);
        assert_eq!(context.span_id().to_string(), SPAN);
        assert!(context.is_sampled() && context.is_remote());
        assert_eq!(context.trace_state().header(), "a=b");
        let later = read(&format!("01-{TRACE}-{SPAN}-00-more"), Some("no state"));
        assert!(!later.unwrap().is_sampled());
    }

    #[test]
    fn what_is_none_is_left_alone() {
        let none = "0".repeat(32);
        for wrong in [
            String::new(),
            "00".into(),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("00-{none}-{SPAN}-01"),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{TRACE}-{SPAN}-zz"),
            format!("00-{TRACE}é-{SPAN}-01"),
        ] {
            assert!(read(&wrong, None).is_none(), "{wrong}");
        }
    }
}
