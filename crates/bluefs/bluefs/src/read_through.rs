//! Reads bytes of a file through its read-ahead window and the cache. Sequential reads are read ahead and do not fill
//! the cache, so that a compaction does not displace its content; other reads fill it.

use crate::cache::RUN;
use crate::format::operation::Kind;
use crate::handle::Handle;
use crate::node::Body;
use crate::readahead::{MAX_WINDOW, Sequence};
use crate::readahead_window::Window;
use crate::{Error, Result};
use runtime::sync::Mutex;
use std::ops::Range;

/// Reads of at least so many bytes do not fill the cache, and search it only if it also has written data.
const PAST_CACHE: u64 = 256 << 10;

/// An open file, shared by its readers.
pub(crate) struct Open {
    pub handle: Handle,
    /// A reader that finds it locked reads without read-ahead.
    ahead: Mutex<Ahead>,
}

struct Ahead {
    sequence: Sequence,
    window: Window,
}

impl Open {
    pub fn new(handle: Handle) -> Self {
        let ahead = Ahead {
            sequence: Sequence::default(),
            window: Window::new(handle.shared.ahead_left.clone()),
        };
        Self {
            handle,
            ahead: Mutex::new(ahead),
        }
    }

    /// The part of `body` that a read needs, including whole runs of the cache and the largest read-ahead window.
    pub fn part(&self, body: &Body, offset: u64, length: u64) -> Body {
        let end = offset.saturating_add(length);
        if !self.handle.shared.cache.is_on() {
            return body.part(offset, end);
        }
        let window = end.saturating_add(MAX_WINDOW);
        body.part(offset / RUN * RUN, window.next_multiple_of(RUN))
    }

    pub fn caches(&self) -> bool {
        let Handle { shared, node } = &self.handle;
        node.kind == Kind::Plain && shared.cache.is_on()
    }

    /// Reads bytes that are all on the drive. With `keeps`, they may be put into the cache.
    pub fn read_written(
        &self,
        body: &Body,
        offset: u64,
        target: &mut [u8],
        keeps: bool,
    ) -> Result<()> {
        let length = target.len() as u64;
        let mut window = 0;
        let mut ahead = self.ahead.try_lock();
        if let Some(ahead) = &mut ahead {
            ahead.sequence = ahead.sequence.after(offset, length);
            if ahead.window.serve(body.truncates, offset, target) {
                return Ok(());
            }
            if !ahead.sequence.goes_on() {
                ahead.window.clear();
            }
            // Without a cache, a layer below caches and reads ahead itself.
            if self.handle.shared.cache.is_on() {
                window = ahead.sequence.window(length);
            }
        }
        let keeps = self.caches() && keeps && length < PAST_CACHE;
        let cache_writes = self.handle.shared.cache_writes;
        let found = if self.caches() && (length < PAST_CACHE || cache_writes) {
            self.take_cached(body, offset, target)
        } else {
            0
        };
        let (offset, target) = (offset + found as u64, &mut target[found..]);
        if target.is_empty() {
            return Ok(());
        }
        let window = window.min(body.written() - offset);
        if let Some(ahead) = &mut ahead
            && window > target.len() as u64
        {
            let read = |bytes: &mut [u8]| self.handle.take_from_drive(body, offset, bytes).is_ok();
            if ahead.window.fill(body.truncates, offset, window, read) {
                ahead.sequence = ahead.sequence.ahead(window);
                ahead.window.serve(body.truncates, offset, target);
                return Ok(());
            }
        }
        drop(ahead);
        if keeps {
            self.through_cache(body, offset, target)
        } else {
            self.handle.take_from_drive(body, offset, target)
        }
    }

    /// Copies what the cache has, from the start of `target` on, and returns the number of bytes copied.
    pub fn take_cached(&self, body: &Body, offset: u64, target: &mut [u8]) -> usize {
        let Handle { shared, node } = &self.handle;
        let end = offset + target.len() as u64;
        let mut next = offset;
        while next < end {
            let to = end.min((next / RUN + 1) * RUN);
            let Some(run) = shared.cache.get(node.inode, body.truncates, &(next..to)) else {
                break;
            };
            let from = (next % RUN) as usize;
            let found = &run[from..from + (to - next) as usize];
            target[(next - offset) as usize..][..found.len()].copy_from_slice(found);
            next = to;
        }
        (next - offset) as usize
    }

    /// Reads the whole runs around the bytes from the drive, and puts them into the cache. If that fails, reads only the
    /// bytes, and caches nothing.
    fn through_cache(&self, body: &Body, offset: u64, target: &mut [u8]) -> Result<()> {
        let Range { start, end } = runs_of(offset, target.len() as u64, body.written());
        let mut bytes = vec![0; (end - start) as usize];
        if let Err(error) = self.handle.take_from_drive(body, start, &mut bytes) {
            let asked = body.part(offset, offset + target.len() as u64).pieces;
            return match error {
                // The requested bytes may be the wrong ones.
                Error::Corrupt { at, .. } if asked.iter().any(|p| p.at == at) => Err(error),
                // The bytes around the requested ones may be unreadable.
                _ => self.handle.take_from_drive(body, offset, target),
            };
        }
        let from = (offset - start) as usize;
        target.copy_from_slice(&bytes[from..from + target.len()]);
        if end - start <= RUN {
            self.keep(body, start, bytes);
        } else {
            let runs = bytes.chunks(RUN as usize).map(<[u8]>::to_vec);
            let runs = (start..).step_by(RUN as usize).zip(runs);
            runs.for_each(|(at, run)| self.keep(body, at, run));
        }
        Ok(())
    }

    pub fn keep(&self, body: &Body, start: u64, run: Vec<u8>) {
        let Handle { shared, node } = &self.handle;
        shared
            .cache
            .put(node.inode, body.truncates, start, run.into());
    }
}

/// The whole runs that hold these bytes, at most up to the written end of the file.
pub(crate) fn runs_of(offset: u64, length: u64, written: u64) -> Range<u64> {
    let start = offset / RUN * RUN;
    start..(offset + length).next_multiple_of(RUN).min(written)
}
