//! A flash drive in virtual time.

use super::array::{Array, Wear};
use super::controller::Controller;
use super::page_mapped::PageMapped;
use super::zoned::Zoned;
use crate::completions::Completions;
use crate::model::Model;
use crate::request::{Completion, Failure, Lba, Request, RequestKind, Tag};
use crate::saved;
use crate::statistics::ModelStatistics;
use crate::time::Time;
use device::rules::ZoneTable;
use serde::{Deserialize, Serialize};

/// The side that decides where data goes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Management {
    /// The drive: page-mapped translation.
    Pages(PageMapped),
    /// The host: zones.
    Zones(Zoned),
}

/// A solid-state drive, zoned or not. Every request begins on arrival: there is no queue, because requests wait for
/// dies and channels. The write buffer survives a power cut.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FlashDrive {
    array: Array,
    controller: Controller,
    management: Management,
    ended: Completions,
    host: ModelStatistics,
}

impl FlashDrive {
    pub(super) fn new(array: Array, controller: Controller, management: Management) -> Self {
        Self {
            array,
            controller,
            management,
            ended: Completions::default(),
            host: ModelStatistics::default(),
        }
    }

    /// The flash array.
    pub const fn array(&self) -> &Array {
        &self.array
    }

    /// Erase counts of superblocks.
    pub fn wear(&self) -> Wear {
        self.array.wear()
    }

    /// The side that decides where data goes, with its state.
    pub const fn management(&self) -> &Management {
        &self.management
    }

    fn run(&mut self, request: Request, now: Time) -> Completion {
        let tag = self.ended.name();
        let at = self.controller.command(now, request.operation);
        let blocks = self.blocks();
        let done = if request.lba.0 >= blocks || request.end().0 > blocks {
            Err(Failure::OutOfRange)
        } else {
            self.serve(&request, at)
        };
        let (lba, at, result) = match done {
            Ok((lba, at)) => (lba, at, Ok(())),
            Err(failure) => (request.lba, at, Err(failure)),
        };
        Completion {
            tag,
            lba,
            submitted: now,
            at,
            result,
        }
    }

    /// Serves a request that is decoded at `at`; returns its block address and its end.
    fn serve(&mut self, request: &Request, at: Time) -> Result<(Lba, Time), Failure> {
        let Request {
            operation,
            lba,
            blocks,
        } = *request;
        let at = match operation {
            RequestKind::Read => self.read(request, at)?,
            RequestKind::Write | RequestKind::WriteThrough | RequestKind::Append => {
                return self.write(request, at);
            }
            RequestKind::Flush => {
                self.host.flushes += 1;
                at
            }
            RequestKind::Trim => {
                let Management::Pages(pages) = &mut self.management else {
                    return Err(Failure::Unsupported);
                };
                for block in 0..u64::from(blocks) {
                    pages.discard(&self.array, lba.0 + block);
                }
                at
            }
            _ => {
                let Management::Zones(zoned) = &mut self.management else {
                    return Err(Failure::Unsupported);
                };
                let (array, buffer) = (&mut self.array, &mut self.controller.buffer);
                match operation {
                    RequestKind::ResetZone => zoned.reset(array, buffer, at, lba)?,
                    RequestKind::FinishZone => zoned.finish(array, buffer, at, lba)?,
                    _ => {
                        zoned.set_open(lba, operation == RequestKind::OpenZone)?;
                        at
                    }
                }
            }
        };
        Ok((lba, at))
    }

    fn read(&mut self, request: &Request, at: Time) -> Result<Time, Failure> {
        let Request { lba, blocks, .. } = *request;
        let read = match &self.management {
            Management::Pages(pages) => pages.read(&mut self.array, at, lba.0, blocks),
            Management::Zones(zoned) => zoned.read(&mut self.array, at, lba, blocks)?,
        };
        self.host.reads += 1;
        self.host.read_blocks += u64::from(blocks);
        Ok(self.controller.answer(read, request))
    }

    fn write(&mut self, request: &Request, at: Time) -> Result<(Lba, Time), Failure> {
        let Request {
            operation,
            lba,
            blocks,
        } = *request;
        let (lba, at) = match &mut self.management {
            Management::Pages(pages) => {
                if operation == RequestKind::Append {
                    return Err(Failure::Unsupported);
                }
                let mut taken = self.controller.bring(at, request);
                let (array, buffer) = (&mut self.array, &mut self.controller.buffer);
                for block in 0..u64::from(blocks) {
                    taken = buffer.take(taken, 1);
                    pages.write(array, buffer, taken, lba.0 + block);
                }
                (lba, taken)
            }
            Management::Zones(zoned) => {
                let place = zoned.plan(lba, blocks, operation == RequestKind::Append)?;
                let brought = self.controller.bring(at, request);
                let (array, buffer) = (&mut self.array, &mut self.controller.buffer);
                (place, zoned.write(array, buffer, brought, place, blocks))
            }
        };
        self.host.writes += 1;
        self.host.written_blocks += u64::from(blocks);
        Ok((lba, at))
    }
}

impl Model for FlashDrive {
    fn blocks(&self) -> u64 {
        match &self.management {
            Management::Pages(pages) => pages.blocks(),
            Management::Zones(zoned) => zoned.zones().blocks(),
        }
    }

    fn submit(&mut self, request: Request, now: Time) -> Completion {
        self.run(request, now)
    }

    fn enqueue(&mut self, request: Request, now: Time) -> Tag {
        let completion = self.run(request, now);
        self.ended.push(completion);
        completion.tag
    }

    fn next_completion(&mut self) -> Option<Completion> {
        self.ended.pop()
    }

    fn completion_by(&mut self, now: Time) -> Option<Completion> {
        self.ended.pop_by(now)
    }

    fn next_moment(&self) -> Option<Time> {
        self.ended.first()
    }

    fn idle_until(&mut self, _now: Time) {}

    fn saved(&self) -> Option<Vec<u8>> {
        saved::encode(self)
    }

    fn takes_trim(&self) -> bool {
        matches!(self.management, Management::Pages(_))
    }

    /// Acknowledged writes are in the buffer or on flash; others may have been done or not.
    fn power_cut(&mut self, now: Time) -> Vec<Completion> {
        if let Management::Zones(zoned) = &mut self.management {
            zoned.power_cycle();
        }
        let lost = self.ended.take_after(now).into_iter();
        lost.map(|completion| completion.cut_off(now)).collect()
    }

    fn statistics(&self) -> ModelStatistics {
        ModelStatistics {
            flash: self.array.counts(),
            ..self.host
        }
    }

    fn zones(&self) -> Option<&ZoneTable> {
        match &self.management {
            Management::Zones(zoned) => Some(zoned.zones().table()),
            Management::Pages(_) => None,
        }
    }
}
