//! A host in virtual time that keeps a number of requests under way.

use crate::model::Model;
use crate::request::{Completion, Request};
use crate::time::Time;
use runtime::HashMap;
use std::ops::ControlFlow;

/// Keeps `depth` requests of `next` under way from `start` on: each completion makes room for the next request.
///
/// It ends when there are no more requests, or when `watch`, which sees every completion, breaks; then it waits for
/// the rest. Returns the time of the last completion. Both callbacks get the time.
pub fn keep_under_way(
    model: &mut dyn Model,
    depth: usize,
    start: Time,
    next: &mut dyn FnMut(Time) -> Option<Request>,
    watch: &mut dyn FnMut(Time, Request, &Completion) -> ControlFlow<()>,
) -> Time {
    let mut under_way = HashMap::default();
    let (mut now, mut to_send, mut going) = (start, depth, true);
    loop {
        for _ in 0..to_send {
            let Some(request) = next(now) else { break };
            under_way.insert(model.enqueue(request, now), request);
        }
        let Some(done) = model.next_completion() else {
            return now;
        };
        now = now.max(done.at);
        // A saved state may have completions of requests that were under way when it was saved.
        if let Some(request) = under_way.remove(&done.tag) {
            going &= watch(now, request, &done).is_continue();
        }
        to_send = usize::from(going);
    }
}

/// Serves all `requests` from `start` on, `depth` at a time; returns the completions in the order of the requests.
pub fn answers(
    model: &mut dyn Model,
    start: Time,
    depth: usize,
    requests: impl IntoIterator<Item = Request>,
) -> Vec<Completion> {
    let mut requests = requests.into_iter();
    let mut done = Vec::new();
    keep_under_way(
        model,
        depth,
        start,
        &mut |_| requests.next(),
        &mut |_, _, completion| {
            done.push(*completion);
            ControlFlow::Continue(())
        },
    );
    // A model numbers requests in order of arrival.
    done.sort_unstable_by_key(|completion| completion.tag);
    done
}
