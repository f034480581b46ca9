//! A model with data, in virtual time: time passes only as far as its requests take, or as it is left alone.
//!
//! A write's bytes are there when it is sent, and a read brings those that are there when it is sent. What a
//! power cut takes from the model stays in the data.

use crate::block_device::{BlockDevice, Done, Payload};
use crate::data::{Data, carry_out, fetch};
use drive_model::{Completion, Lba, Model, Request, RequestKind, Span, Tag, Time, keep_under_way};
use runtime::HashMap;
use std::io;
use std::ops::{ControlFlow, Range};

/// See the head of this file.
pub struct Simulated<D> {
    model: Box<dyn Model>,
    now: Time,
    data: D,
    under_way: HashMap<Tag, Waiting>,
}

struct Waiting {
    token: u64,
    request: Request,
    /// Nothing if nobody wants bytes.
    data: Option<Box<Carried>>,
}

/// What became of a request's data.
struct Carried {
    /// Bytes that were asked for.
    length: u64,
    read: io::Result<Vec<u8>>,
}

impl<D: Data> Simulated<D> {
    /// A model at the beginning of its time; it takes any write, or has none that brings data.
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

    /// Asks for what `next` gives, `depth` requests at a time, by those who want their times only: no bytes, no
    /// tokens. See [`drive_model::keep_under_way`].
    pub fn keep_under_way(
        &mut self,
        depth: usize,
        next: &mut dyn FnMut(Time) -> Option<Request>,
        watch: &mut dyn FnMut(Time, Request, &Completion) -> ControlFlow<()>,
    ) {
        self.now = keep_under_way(&mut *self.model, depth, self.now, next, watch);
    }

    /// Cuts the power and puts it on again: what waits is answered by nothing.
    pub fn power_cut(&mut self) {
        self.model.power_cut(self.now);
        self.under_way.clear();
    }

    /// What its request brought; nothing if it was one of a saved state.
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

    /// Does to the data what a request says.
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
