//! A host that keeps a number of requests under way.
#![allow(dead_code, clippy::unwrap_used)]

pub mod lsm;

use drive_model::{Completion, Drive, Lba, Profile, Request, Span, Time};
use std::collections::HashMap;

pub fn drive(name: &str) -> Drive {
    let mut drive = Profile::named(name).unwrap().drive(1).unwrap();
    // As the main document measured unless it says otherwise (section 2.4.2).
    drive.set_volatile_cache(false);
    drive.set_look_ahead(false);
    drive
}

/// Xorshift: the same in every run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    pub fn shuffled(&mut self, count: u64) -> Vec<u64> {
        let mut all: Vec<u64> = (0..count).collect();
        for i in (1..all.len()).rev() {
            all.swap(i, self.below(i as u64 + 1) as usize);
        }
        all
    }
}

/// Runs requests with `depth` of them under way; completions in the order of the requests.
pub fn run(
    drive: &mut Drive,
    start: Time,
    depth: usize,
    requests: impl IntoIterator<Item = Request>,
) -> Vec<Completion> {
    let mut requests = requests.into_iter();
    let mut done: Vec<Option<Completion>> = Vec::new();
    let mut places = HashMap::new();
    let mut enqueue = |drive: &mut Drive, done: &mut Vec<_>, places: &mut HashMap<_, _>, now| {
        if let Some(request) = requests.next() {
            places.insert(drive.enqueue(request, now), done.len());
            done.push(None);
        }
    };
    for _ in 0..depth {
        enqueue(drive, &mut done, &mut places, start);
    }
    while let Some(completion) = drive.next_completion() {
        done[places[&completion.tag]] = Some(completion);
        enqueue(drive, &mut done, &mut places, completion.at);
    }
    done.into_iter().flatten().collect()
}

pub fn end(completions: &[Completion]) -> Time {
    completions.iter().map(|c| c.at).max().unwrap()
}

pub fn millis(completions: &[Completion]) -> Vec<f64> {
    completions.iter().map(|c| c.latency().millis()).collect()
}

pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Random single-block writes across the drive.
pub fn random_writes(random: &mut Random, blocks: u64, count: u64) -> Vec<Request> {
    (0..count)
        .map(|_| Request::write(Lba(random.below(blocks)), 1))
        .collect()
}

pub fn after(completions: &[Completion], millis: f64) -> Time {
    end(completions) + Span::from_millis(millis)
}
