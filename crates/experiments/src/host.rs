//! What a host sees of completions: end and latencies.

use drive_model::{Completion, Lba, Random, Request, Span, Time};

/// When the last request completed; [`Time::START`] if there is none.
pub fn end(completions: &[Completion]) -> Time {
    let all = completions.iter().map(|c| c.at);
    all.max().unwrap_or(Time::START)
}

/// The time `millis` milliseconds after the last completion.
pub fn after(completions: &[Completion], millis: f64) -> Time {
    end(completions) + Span::from_millis(millis)
}

/// Latencies in milliseconds.
pub fn millis(completions: &[Completion]) -> Vec<f64> {
    completions.iter().map(|c| c.latency().millis()).collect()
}

/// Single-block writes at random places of a drive of `blocks` blocks.
pub fn random_writes(
    random: &mut Random,
    blocks: u64,
    count: u64,
) -> impl Iterator<Item = Request> + use<'_> {
    (0..count).map(move |_| Request::write(Lba(random.below(blocks)), 1))
}
