//! A drive: a queue, a volatile cache and a translation layer over a disk, in virtual time.

use crate::completions::Completions;
use crate::disk::Disk;
use crate::flash;
use crate::layer::{Layer, Translation, Turnout};
use crate::mechanics::{ArmPosition, Counts};
use crate::model::Model;
use crate::noise::Noise;
use crate::queue::{Queue, Served, Waiting};
use crate::request::{BLOCK_BYTES, Completion, Failure, Lba, Refusal, Request, RequestKind, Tag};
use crate::saved;
use crate::statistics::ModelStatistics;
use crate::time::{Span, Time};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Electronics of a drive, as in a profile: its properties apart from the mechanics.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Electronics {
    /// Microseconds of overhead of each command before anything moves.
    pub command_us: f64,
    /// Bytes a second of the interface between host and drive.
    pub interface_bytes_per_second: u64,
    /// Bytes of the volatile write cache.
    pub volatile_cache_bytes: u64,
    /// Bytes of the read-ahead buffer.
    pub look_ahead_bytes: u64,
}

/// A disk drive in virtual time. [`submit`](Self::submit) serves one request at a time; [`enqueue`](Self::enqueue)
/// and [`next_completion`](Self::next_completion) serve several.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DiskDrive {
    disk: Disk,
    layer: Translation,
    electronics: Electronics,
    volatile_cache: bool,
    queue: Queue,
    /// Number of blocks in the volatile cache.
    cached_blocks: u64,
    /// End of the present work: the drive is idle from then on unless a request arrives.
    free_at: Time,
    /// The interface is idle from this time on.
    link_free_at: Time,
    /// The writes that were served last, each with the time when it is whole on the medium.
    serving: Vec<(Tag, Request, Time)>,
    /// While a stream may be about to arrive, the drive begins nothing before this time.
    hold_until: Option<Time>,
    ended: Completions,
    noise: Option<Noise>,
    reads: (u64, u64),
    writes: (u64, u64),
    flushes: u64,
}

impl DiskDrive {
    /// A drive just switched on: its volatile cache and read-ahead, if it has them, are on.
    pub fn new(disk: Disk, layer: Translation, electronics: Electronics) -> Self {
        let mut drive = Self {
            disk,
            layer,
            electronics,
            volatile_cache: false,
            queue: Queue::default(),
            cached_blocks: 0,
            free_at: Time::START,
            link_free_at: Time::START,
            serving: Vec::new(),
            hold_until: None,
            ended: Completions::default(),
            noise: None,
            reads: (0, 0),
            writes: (0, 0),
            flushes: 0,
        };
        drive.set_look_ahead(true);
        drive.set_volatile_cache(true);
        drive
    }

    /// The same drive with noise.
    #[must_use]
    pub fn with_noise(self, noise: Option<Noise>) -> Self {
        Self { noise, ..self }
    }

    /// Number of logical blocks.
    pub fn blocks(&self) -> u64 {
        self.layer.blocks()
    }

    /// Switches the volatile write cache (`hdparm -W`). Blocks in the cache stay there until they are written.
    pub fn set_volatile_cache(&mut self, on: bool) {
        self.volatile_cache = on && self.electronics.volatile_cache_bytes > 0;
        self.layer.set_volatile_cache(self.volatile_cache);
    }

    /// Switches read-ahead (`hdparm -A`).
    pub fn set_look_ahead(&mut self, on: bool) {
        let blocks = self.electronics.look_ahead_bytes / BLOCK_BYTES;
        self.disk.set_look_ahead(if on { blocks } else { 0 });
    }

    /// Position of the arm, as a camera through a window would see it.
    pub const fn arm(&self) -> ArmPosition {
        self.disk.arm()
    }

    /// The disk.
    pub const fn disk(&self) -> &Disk {
        &self.disk
    }

    /// The translation layer.
    pub const fn translation(&self) -> &Translation {
        &self.layer
    }

    /// Whether any write or cleaning is outstanding.
    pub fn is_dirty(&self) -> bool {
        !self.queue.is_empty() || self.layer.is_dirty()
    }

    /// Counters since the start.
    pub fn statistics(&self) -> ModelStatistics {
        ModelStatistics {
            reads: self.reads.0,
            read_blocks: self.reads.1,
            writes: self.writes.0,
            written_blocks: self.writes.1,
            flushes: self.flushes,
            medium: self.disk.counts(),
            cleaning: self.layer.cleaning(),
            flash: flash::Counts::default(),
        }
    }

    /// Serves one request to its completion. Requests that were enqueued earlier are served with it and keep their
    /// completions.
    pub fn submit(&mut self, request: Request, now: Time) -> Completion {
        let tag = self.enqueue(request, now);
        self.wait_for(tag, request, now)
    }

    /// Completion of a request that was enqueued at `now`.
    pub(crate) fn wait_for(&mut self, tag: Tag, request: Request, now: Time) -> Completion {
        let mut others = Vec::new();
        loop {
            match self.next_completion() {
                Some(completion) if completion.tag == tag => {
                    self.put_back(others);
                    return completion;
                }
                Some(other) => others.push(other),
                // Every unacknowledged request has a completion; this one gets one in any case.
                None => {
                    self.put_back(others);
                    return Completion {
                        tag,
                        lba: request.lba,
                        submitted: now,
                        at: now,
                        result: Err(Failure::PowerLost),
                    };
                }
            }
        }
    }

    fn put_back(&mut self, completions: Vec<Completion>) {
        for completion in completions {
            self.ended.push(completion);
        }
    }

    fn receive(&mut self, request: Request, now: Time) -> Waiting {
        self.advance(now);
        Waiting {
            tag: self.ended.name(),
            request,
            submitted: now,
            ready: now + Span::from_micros(self.electronics.command_us),
            acknowledged: false,
            passed_over: 0,
        }
    }

    /// Queues a request like [`enqueue`](Self::enqueue) and completes it without touching the medium: a read returns
    /// zeros.
    pub(crate) fn answer(
        &mut self,
        request: Request,
        now: Time,
        result: Result<(), Failure>,
    ) -> Tag {
        let waiting = self.receive(request, now);
        let at = if request.operation == RequestKind::Read && result.is_ok() {
            self.transfer(&request, waiting.ready)
        } else {
            waiting.ready
        };
        self.end(waiting, at, result);
        waiting.tag
    }

    /// Queues a request that arrives at `now`, which is not before the arrival of the last one.
    pub fn enqueue(&mut self, request: Request, now: Time) -> Tag {
        let mut waiting = self.receive(request, now);
        let tag = waiting.tag;
        if request.end().0 > self.blocks() || request.end() < request.lba {
            self.end(waiting, waiting.ready, Err(Failure::OutOfRange));
            return tag;
        }
        let moves_blocks = request.operation == RequestKind::Read || request.operation.is_write();
        if moves_blocks && request.blocks == 0 {
            let refused = Failure::Refused(Refusal::InvalidField);
            self.end(waiting, waiting.ready, Err(refused));
            return tag;
        }
        match request.operation {
            RequestKind::Read => {
                self.reads.0 += 1;
                self.reads.1 += u64::from(request.blocks);
                if self.volatile_cache && self.queue.holds(&request) {
                    let at = self.transfer(&request, waiting.ready);
                    self.end(waiting, at, Ok(()));
                    return tag;
                }
            }
            RequestKind::Write | RequestKind::WriteThrough => {
                self.writes.0 += 1;
                self.writes.1 += u64::from(request.blocks);
                if request.operation == RequestKind::Write && self.fits_cache(&request) {
                    self.acknowledge(&mut waiting, now);
                }
            }
            RequestKind::Flush => self.flushes += 1,
            _ => {
                self.end(waiting, waiting.ready, Err(Failure::Unsupported));
                return tag;
            }
        }
        self.hold_until = None;
        self.queue.push(waiting);
        tag
    }

    /// Time at which a request's blocks have crossed the interface. Transfers take place one after another, and none
    /// begins before `from`.
    fn transfer(&mut self, request: &Request, from: Time) -> Time {
        let rate = self.electronics.interface_bytes_per_second.max(1);
        let begin = from.max(self.link_free_at);
        self.link_free_at = begin + Span::transfer(request.bytes(), rate);
        self.link_free_at
    }

    fn fits_cache(&self, request: &Request) -> bool {
        let all = self.electronics.volatile_cache_bytes / BLOCK_BYTES;
        self.volatile_cache && self.cached_blocks + u64::from(request.blocks) <= all
    }

    /// Acknowledges a write that is in the volatile cache from `at` on.
    fn acknowledge(&mut self, waiting: &mut Waiting, at: Time) {
        waiting.acknowledged = true;
        self.cached_blocks += u64::from(waiting.request.blocks);
        let at = self.transfer(&waiting.request, waiting.ready.max(at));
        self.end(*waiting, at, Ok(()));
        waiting.ready = at;
    }

    fn end(&mut self, waiting: Waiting, at: Time, result: Result<(), Failure>) {
        let served = Served {
            waiting,
            at,
            result,
        };
        self.push(served);
    }

    /// Completes a request, with the jitter of the interface.
    fn push(&mut self, served: Served) {
        let jitter = self.noise.as_mut().map_or(Span::ZERO, Noise::jitter);
        let at = served.at + jitter;
        self.ended.push(Served { at, ..served }.completion());
    }

    /// The next completion; `None` if the host waits for no request.
    pub fn next_completion(&mut self) -> Option<Completion> {
        loop {
            let next = self.next_start();
            let first = self.ended.first();
            if first.is_some_and(|first| next.is_none_or(|next| first <= next))
                || !self.queue.is_waited_for()
            {
                return self.ended.pop();
            }
            self.step(next?);
        }
    }

    /// See [`Model::completion_by`].
    pub fn completion_by(&mut self, now: Time) -> Option<Completion> {
        self.advance(now);
        self.ended.pop_by(now)
    }

    /// See [`Model::next_moment`].
    pub fn next_moment(&self) -> Option<Time> {
        // [`Self::completion_by`] begins only what starts before its time, so a moment has to pass after the start.
        let begins = self.next_start().filter(|_| self.queue.is_waited_for());
        let begun = begins.map(|start| start + Span::from_nanos(1));
        self.ended.first().into_iter().chain(begun).min()
    }

    /// Time at which the drive would begin with a waiting request.
    fn next_start(&self) -> Option<Time> {
        let ready = self.queue.ready()?;
        let start = ready.max(self.free_at);
        Some(self.hold_until.map_or(start, |hold| start.max(hold)))
    }

    /// Works until `now`: serves requests that begin before, and lets the layer work in between.
    fn advance(&mut self, now: Time) {
        while let Some(start) = self.next_start()
            && start < now
        {
            self.step(start);
        }
        if self.queue.is_empty() && self.free_at < now {
            self.free_at = self.layer.idle(&mut self.disk, self.free_at, now);
        }
    }

    /// Lets time pass until `now` without a new request.
    pub fn idle_until(&mut self, now: Time) {
        self.advance(now);
    }

    /// Time at which the drive's present work ends.
    pub const fn busy_until(&self) -> Time {
        self.free_at
    }

    fn step(&mut self, start: Time) {
        if self.hold_until.is_none() && start > self.free_at {
            self.free_at = self.layer.idle(&mut self.disk, self.free_at, start);
            if let Some(noise) = &mut self.noise
                && self.free_at < start
            {
                let free = noise.scan(&mut self.disk, self.free_at, start);
                self.free_at = free;
                if free > start {
                    // A request that arrives until then can be chosen as well.
                    return;
                }
            }
        }
        let start = start.max(self.free_at);
        if self.end_flush(start) {
            return;
        }
        let before = self.disk.counts();
        match self.layer.serve(&mut self.disk, start, &mut self.queue) {
            Turnout::Served(mut served, mut free_at) => {
                self.hold_until = None;
                if let Some(noise) = &mut self.noise {
                    free_at += disturb(noise, &self.disk, before, &mut served);
                }
                self.free_at = free_at;
                self.serving.clear();
                for one in served {
                    if one.waiting.request.operation.is_write() {
                        let waiting = &one.waiting;
                        self.serving.push((waiting.tag, waiting.request, one.at));
                    }
                    if one.waiting.acknowledged {
                        self.cached_blocks -= u64::from(one.waiting.request.blocks);
                    } else {
                        // The transfer overlaps with the movement of the heads, but a request is not complete before
                        // it.
                        let crossed = match one.result {
                            Ok(()) => self.transfer(&one.waiting.request, start),
                            Err(_) => one.at,
                        };
                        let at = one.at.max(crossed);
                        self.push(Served { at, ..one });
                    }
                }
                self.acknowledge_more(free_at);
            }
            Turnout::NotBefore(time) => self.hold_until = Some(time),
        }
    }

    /// Completes a flush once no write that arrived before it waits. `true` if it did.
    fn end_flush(&mut self, now: Time) -> bool {
        if !self.queue.has_flushes() {
            return false;
        }
        let done = self.queue.iter().position(|w| {
            w.ready <= now
                && w.request.operation == RequestKind::Flush
                && !self.queue.has_writes_before(w.tag)
        });
        if let Some(index) = done {
            let waiting = self.queue.remove(index);
            self.end(waiting, now, Ok(()));
        }
        done.is_some()
    }

    /// Acknowledges writes that fit into the volatile cache again.
    fn acknowledge_more(&mut self, now: Time) {
        while self.volatile_cache
            && let Some(index) = self.oldest_write(now)
        {
            let mut waiting = self.queue.remove(index);
            let fits = self.fits_cache(&waiting.request);
            if fits {
                self.acknowledge(&mut waiting, now);
            }
            self.queue.insert(index, waiting);
            if !fits {
                return;
            }
        }
    }

    /// Position in the queue of the oldest unacknowledged write that arrived by `now`; only plain writes may be
    /// acknowledged from the volatile cache.
    fn oldest_write(&self, now: Time) -> Option<usize> {
        let is_one = |w: &Waiting| w.request.operation == RequestKind::Write && w.submitted <= now;
        let mut unanswered = self.queue.unanswered();
        unanswered.find(|index| self.queue.get(*index).is_some_and(is_one))
    }

    /// For each write, acknowledged or not, that is not whole on the medium at `now`: its first block that is
    /// missing.
    pub(crate) fn unwritten(&self, now: Time) -> Vec<Lba> {
        let waiting = self.queue.iter().map(|waiting| waiting.request);
        let waiting = waiting.filter(|request| request.operation.is_write());
        let under_way = self.serving.iter().filter(|(_, _, at)| *at > now);
        let come = |(_, request, _): &(Tag, Request, Time)| {
            request.lba.plus(self.reached_of(request, now))
        };
        waiting
            .map(|request| request.lba)
            .chain(under_way.map(come))
            .collect()
    }

    /// Number of blocks of a write, acknowledged or not, that are on the medium at `now`, counted from its first; `None`
    /// if all of them are.
    pub(crate) fn reached(&self, tag: Tag, now: Time) -> Option<u64> {
        if self.queue.has(tag) {
            return Some(0);
        }
        let under_way = |(served, _, at): &&(Tag, Request, Time)| *served == tag && *at > now;
        let (_, request, _) = self.serving.iter().find(under_way)?;
        Some(self.reached_of(request, now))
    }

    /// Number of blocks of the write that is being served that are on the medium at `now`.
    fn reached_of(&self, request: &Request, now: Time) -> u64 {
        let blocks = self.layer.reached(&self.disk, now);
        blocks.min(request.blocks.into())
    }

    /// Cuts the power at `now` and restores it: blocks that were not on the medium are lost. Returns the completions
    /// of waiting requests, which fail.
    pub fn power_cut(&mut self, now: Time) -> Vec<Completion> {
        self.advance(now);
        self.layer.power_cut(&self.disk, now);
        self.disk.clear_look_ahead();
        self.link_free_at = now;
        let mut lost = Vec::new();
        let unanswered: Vec<Waiting> = self
            .queue
            .iter()
            .filter(|w| !w.acknowledged)
            .copied()
            .collect();
        self.queue = Queue::default();
        self.cached_blocks = 0;
        self.serving.clear();
        self.hold_until = None;
        lost.extend(self.ended.take_after(now));
        lost.extend(unanswered.iter().map(|waiting| {
            let served = Served {
                waiting: *waiting,
                at: now,
                result: Ok(()),
            };
            served.completion()
        }));
        self.free_at = now;
        lost.into_iter().map(|end| end.cut_off(now)).collect()
    }
}

/// Delays served requests by retries, if the heads moved. Returns how much longer the drive is busy.
fn disturb(noise: &mut Noise, disk: &Disk, before: Counts, served: &mut [Served]) -> Span {
    let mut later = Span::ZERO;
    if disk.counts() != before {
        later = noise.retries(disk.mechanics().geometry().rotation());
    }
    for one in served {
        one.at += later;
        later += noise.outlier();
    }
    later
}

impl Model for DiskDrive {
    fn endangered(&self, lba: Lba, blocks: u64) -> Range<u64> {
        self.translation().endangered(lba, blocks)
    }

    fn first_damaged(&self, lba: Lba, blocks: u64) -> Option<Lba> {
        self.translation().unreadable(lba, blocks)
    }

    fn set_volatile_cache(&mut self, on: bool) -> bool {
        self.set_volatile_cache(on);
        true
    }

    fn set_look_ahead(&mut self, on: bool) -> bool {
        self.set_look_ahead(on);
        true
    }

    fn blocks(&self) -> u64 {
        self.blocks()
    }

    fn submit(&mut self, request: Request, now: Time) -> Completion {
        self.submit(request, now)
    }

    fn enqueue(&mut self, request: Request, now: Time) -> Tag {
        self.enqueue(request, now)
    }

    fn next_completion(&mut self) -> Option<Completion> {
        self.next_completion()
    }

    fn completion_by(&mut self, now: Time) -> Option<Completion> {
        self.completion_by(now)
    }

    fn next_moment(&self) -> Option<Time> {
        self.next_moment()
    }

    fn idle_until(&mut self, now: Time) {
        self.idle_until(now);
    }

    fn saved(&self) -> Option<Vec<u8>> {
        saved::encode(self)
    }

    fn is_rotational(&self) -> bool {
        true
    }

    fn power_cut(&mut self, now: Time) -> Vec<Completion> {
        self.power_cut(now)
    }

    fn statistics(&self) -> ModelStatistics {
        self.statistics()
    }
}
