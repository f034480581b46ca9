//! A model with data, in virtual time: time passes only for requests and idle periods.
//!
//! The data of a write is stored when it is submitted, and a read returns the data at its submission. A power cut of
//! the model does not affect the data.

use crate::block_device::{BlockDevice, Done, Payload};
use crate::data::{Data, carry_out, fetch};
use drive_model::{Completion, Lba, Model, Request, RequestKind, Span, Tag, Time, keep_under_way};
use runtime::HashMap;
use std::io;
use std::ops::{ControlFlow, Range};

/// A model with data, in virtual time.
pub struct Simulated<D> {
    model: Box<dyn Model>,
    now: Time,
    data: D,
    under_way: HashMap<Tag, Waiting>,
}

struct Waiting {
    token: u64,
    request: Request,
    /// `None` if the bytes are not wanted.
    data: Option<Box<Carried>>,
}

/// Result of a request on the data.
struct Carried {
    /// Number of bytes asked for.
    length: u64,
    read: io::Result<Vec<u8>>,
}

impl<D: Data> Simulated<D> {
    /// A device at the start of the model's time. The model has to accept any write, or no request may carry data.
    pub fn new(model: Box<dyn Model>, data: D) -> Self {
        Self {
            model,
            now: Time::START,
            data,
            under_way: HashMap::default(),
        }
    }

    /// The model.
    pub fn model(&mut self) -> &mut dyn Model {
        &mut *self.model
    }

    /// Keeps `depth` requests of `next` under way, for callers that want only their times, without data and tokens.
    /// See [`drive_model::keep_under_way`].
    pub fn keep_under_way(
        &mut self,
        depth: usize,
        next: &mut dyn FnMut(Time) -> Option<Request>,
        watch: &mut dyn FnMut(Time, Request, &Completion) -> ControlFlow<()>,
    ) {
        self.now = keep_under_way(&mut *self.model, depth, self.now, next, watch);
    }

    /// Cuts the power and restores it: waiting requests never complete.
    pub fn power_cut(&mut self) {
        self.model.power_cut(self.now);
        self.under_way.clear();
    }

    /// Converts a completion; `None` if its request belongs to a saved state.
    fn done(&mut self, done: &Completion) -> Option<Done> {
        let Waiting {
            token,
            request,
            data,
        } = self.under_way.remove(&done.tag)?;
        let mut answer = Done {
            token,
            request,
            length: request.bytes(),
            submitted: done.submitted,
            at: self.now,
            result: done.result.map_err(Into::into),
            bytes: Vec::new(),
        };
        if let Some(carried) = data {
            answer.length = carried.length;
            match carried.read {
                Ok(bytes) if answer.result.is_ok() => answer.bytes = bytes,
                Err(error) if answer.result.is_ok() => answer.result = Err(error.into()),
                _ => {}
            }
        }
        Some(answer)
    }

    /// Applies a request to the data.
    fn carry(&self, request: &Request, payload: &Payload) -> Option<Box<Carried>> {
        if matches!(payload, Payload::None) && request.operation != RequestKind::Trim {
            return None;
        }
        let read = if request.end().0 > self.model.blocks() {
            Ok(Vec::new())
        } else {
            carry_out(&self.data, request, payload)
                .and_then(|()| fetch(&self.data, request, payload))
        };
        let length = payload.length(request);
        Some(Box::new(Carried { length, read }))
    }
}

impl<D: Data> BlockDevice for Simulated<D> {
    fn blocks(&self) -> u64 {
        self.model.blocks()
    }

    fn now(&self) -> Time {
        self.now
    }

    fn submit(&mut self, token: u64, request: Request, payload: Payload) {
        let data = self.carry(&request, &payload);
        let tag = self.model.enqueue(request, self.now);
        let waiting = Waiting {
            token,
            request,
            data,
        };
        self.under_way.insert(tag, waiting);
    }

    fn complete(&mut self, patience: Option<Span>) -> Option<Done> {
        let until = patience.map(|patience| self.now + patience);
        loop {
            let next = match until {
                None => self.model.next_completion(),
                Some(until) => self.model.completion_by(until),
            };
            let Some(next) = next else {
                self.now = until.unwrap_or(self.now);
                return None;
            };
            self.now = self.now.max(next.at);
            if let Some(done) = self.done(&next) {
                return Some(done);
            }
        }
    }

    fn idle(&mut self, span: Span) {
        self.now += span;
        self.model.idle_until(self.now);
    }

    fn endangered(&self, lba: Lba, blocks: u64) -> Range<u64> {
        self.model.endangered(lba, blocks)
    }

    fn first_damaged(&self, lba: Lba, blocks: u64) -> Option<Lba> {
        self.model.first_damaged(lba, blocks)
    }
}
