//! What a host sees of answers.

use drive_model::{Completion, Lba, Random, Request, Span, Time};

/// When the last was given; the start for none.
pub fn end(completions: &[Completion]) -> Time {
    let all = completions.iter().map(|c| c.at);
    all.max().unwrap_or(Time::START)
}

/// So many milliseconds after the last.
pub fn after(completions: &[Completion], millis: f64) -> Time {
    end(completions) + Span::from_millis(millis)
}

/// Latencies.
pub fn millis(completions: &[Completion]) -> Vec<f64> {
    completions.iter().map(|c| c.latency().millis()).collect()
}

/// Random single-block writes across a drive of so many blocks.
pub fn random_writes(
    random: &mut Random,
    blocks: u64,
    count: u64,
) -> impl Iterator<Item = Request> + use<'_> {
    (0..count).map(move |_| Request::write(Lba(random.below(blocks)), 1))
}
