//! A host in virtual time: it keeps so many requests under way.

use crate::model::Model;
use crate::request::{Completion, Request};
use crate::time::Time;
use runtime::HashMap;
use std::ops::ControlFlow;

/// Asks for what `next` gives, `depth` requests at a time from `start` on and another one with each answer,
/// until there are no more or `watch`, which sees every answer, breaks; waits for the last of them, and says
/// when that was. Both are told the time.
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
        // None of those of a state that was saved with requests under way.
        if let Some(request) = under_way.remove(&done.tag) {
            going &= watch(now, request, &done).is_continue();
        }
        to_send = usize::from(going);
    }
}

/// Asks for all `requests` from `start` on, `depth` at a time: the answers, in the order of the requests.
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
    // A model numbers requests as they come.
    done.sort_unstable_by_key(|completion| completion.tag);
    done
}
