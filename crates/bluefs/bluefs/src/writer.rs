//! Appends to a file.
//!
//! Bytes collect in the file's tail and go to the drive a chunk at a time. A synchronous append to
//! a log is one write (a record padded to the block) and one flush; of a plain file it is data,
//! a journal frame, and one flush for both, for the write pointer witnesses whether the data is
//! there (docs/format/bluefs.md).

use crate::format::journal::{JournalOperation, Kind};
use crate::format::log_record;
use crate::handle::Handle;
use crate::node::{Node, Segment, Stream, push_piece};
use crate::open_zones::Need;
use crate::options::Lifetime;
use crate::shared::{Placed, Shared};
use crate::slot::{Class, Slot, Want};
use crate::unsynced::ignore_until_synced;
use crate::{Error, Result};
use appender::{Left, Zones};
use device::ZonedDevice;
use runtime::sync::MutexGuard;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zone::{ZoneAddress, ZoneError};

/// Bytes that are written at once.
const CHUNK: usize = 1 << 20;

/// An open file for appending. Dropped without [`Writer::close`], bytes that were not synced are
/// lost.
pub struct Writer {
    handle: Handle,
    path: String,
    class: Class,
    expected_size: u64,
    need: Need,
    failed: Option<Error>,
    closed: bool,
    /// It counts as one of the file's writers no more.
    left: bool,
}

impl Writer {
    pub(crate) fn new(handle: Handle, path: String) -> Self {
        handle.node.writers.fetch_add(1, Ordering::AcqRel);
        let name = &path[path.rfind('/').map_or(0, |at| at + 1)..];
        let class = match handle.node.kind {
            Kind::Plain => Class::Short,
            Kind::Log if name.starts_with("MANIFEST-") => Class::Manifest,
            Kind::Log => Class::Wal,
        };
        let need = match handle.node.kind {
            _ if is_vital(name) => Need::Move,
            Kind::Log => Need::Log,
            Kind::Plain => Need::Waited,
        };
        Self {
            handle,
            path,
            class,
            expected_size: 0,
            need,
            failed: None,
            closed: false,
            left: false,
        }
    }

    fn shared(&self) -> &Shared {
        &self.handle.shared
    }

    /// Bytes in the file.
    pub fn size(&self) -> u64 {
        self.handle.node.body.read().size()
    }

    /// Names the file for as long as the file system is mounted.
    pub fn inode(&self) -> u64 {
        self.handle.node.inode
    }

    /// How long the file is expected to live; files of one lifetime share zones.
    pub fn set_lifetime(&mut self, lifetime: Lifetime) {
        if self.handle.node.kind == Kind::Plain {
            self.class = match lifetime {
                Lifetime::Unknown | Lifetime::Short => Class::Short,
                Lifetime::Medium => Class::Medium,
                Lifetime::Long => Class::Long,
                Lifetime::Extreme => Class::Extreme,
            };
        }
    }

    /// How large the file is expected to become; what fills at least half a zone gets one of its own.
    pub fn set_expected_size(&mut self, bytes: u64) {
        self.expected_size = bytes;
    }

    /// Whether nobody waits for the file, as for a compaction's: the last free zones are left to
    /// files that somebody does wait for.
    pub fn set_background(&mut self, background: bool) {
        self.need = match (self.need, background) {
            (Need::Waited, true) => Need::Background,
            (Need::Background, false) => Need::Waited,
            (need, _) => need,
        };
    }

    /// Appends bytes. They are durable after [`Self::sync`].
    pub fn append(&mut self, data: &[u8]) -> Result<()> {
        self.check()?;
        let asked = match self.handle.node.kind {
            Kind::Plain => &self.shared().counters.plain_asked,
            Kind::Log => &self.shared().counters.log_asked,
        };
        asked.fetch_add(data.len() as u64, Ordering::Relaxed);
        let mut data = data;
        while !data.is_empty() {
            let full = {
                let mut body = self.handle.node.body.write();
                if body.tail.is_empty() {
                    body.tail_since_micros = self.shared().now();
                }
                let take = data
                    .len()
                    .min(self.chunk() - body.tail.len().min(self.chunk()));
                Arc::make_mut(&mut body.tail).extend_from_slice(&data[..take]);
                data = &data[take..];
                body.tail.len() >= self.chunk()
            };
            if full {
                self.write_out(false)?;
            }
        }
        Ok(())
    }

    /// What was appended to a log survives the process from now on, where a mount keeps it for that
    /// ([`crate::MountOptions::keep_unsynced`]). Only [`Self::sync`] makes it durable; it can be read anyway.
    pub fn flush(&mut self) -> Result<()> {
        self.check()?;
        if self.handle.node.kind == Kind::Plain || !self.shared().unsynced.is_on() {
            return Ok(());
        }
        let has_room = {
            let node = &*self.handle.node;
            let mut stream = node.writing.lock();
            if !self.put_into_frame(&mut stream) {
                return Ok(());
            }
            let body = node.body.read();
            let unsynced = &self.shared().unsynced;
            unsynced.note(&mut stream.notes, node.inode, body.written(), &body.tail)
        };
        if has_room {
            Ok(())
        } else {
            self.write_out(true)
        }
    }

    /// Has the journal name the file and where it lies, not durably: a process that dies takes with it what
    /// is in no frame. A failure is told to the next sync.
    fn put_into_frame(&self, stream: &mut Stream) -> bool {
        if !stream.in_frame {
            stream.in_frame = ignore_until_synced(self.shared().write_frames());
        }
        stream.in_frame
    }

    /// Starts writing out what was appended, without waiting for it to be durable.
    pub fn range_sync(&mut self) -> Result<()> {
        self.check()?;
        self.write_out(false)
    }

    /// Makes everything appended so far durable.
    pub fn sync(&mut self) -> Result<()> {
        let result = self.begin_sync()?.wait();
        self.end_sync(result)
    }

    /// Writes out everything appended so far; [`Unsynced::wait`] makes it durable.
    pub(crate) fn begin_sync(&mut self) -> Result<Unsynced> {
        self.check()?;
        self.write_out(true)?;
        let result = self.handle.check_lost();
        self.sticky(result)?;
        Ok(Unsynced {
            shared: self.handle.shared.clone(),
            node: self.handle.node.clone(),
        })
    }

    /// What became of it.
    pub(crate) fn end_sync(&mut self, result: Result<()>) -> Result<()> {
        self.sticky(result)
    }

    /// Truncates the file to `size` bytes.
    pub fn truncate(&mut self, size: u64) -> Result<()> {
        self.check()?;
        let node = self.handle.node.clone();
        let mut stream = node.writing.lock();
        let mut state = self.handle.shared.state.lock();
        state.check()?;
        let mut body = node.body.write();
        let now = body.size();
        if size > now {
            let (path, what) = (self.path.clone(), "the new size");
            return Err(Error::Invalid {
                path,
                what,
                found: size,
                allowed: now,
            });
        }
        if size == now {
            return Ok(());
        }
        self.handle.shared.unsynced.forget(&mut stream.notes);
        let written = body.written();
        if size >= written {
            Arc::make_mut(&mut body.tail).truncate((size - written) as usize);
            return Ok(());
        }
        body.tail = Arc::default();
        body.modified_micros = self.handle.shared.now();
        state.cache.forget(node.inode, body.truncates, written);
        let (gone, before) = body.truncate(size);
        node.named_in.store(state.next_batch, Ordering::Release);
        match node.kind {
            Kind::Plain => {
                let (inode, modified_micros) = (node.inode, body.modified_micros);
                let g = self.handle.shared.device.geometry();
                let left = body.pieces.last().map_or(0, |p| p.blocks(g));
                drop(body);
                if let Some(piece) = before {
                    state.free(piece.at.zone, 0, piece.blocks(g) - left);
                }
                for piece in gone {
                    state.free(piece.at.zone, 1, piece.blocks(g));
                }
                state.record(JournalOperation::Truncate {
                    inode,
                    modified_micros,
                    size,
                });
            }
            Kind::Log => {
                for segment in &mut body.segments {
                    segment.limit = segment.limit.min(size);
                }
                drop(body);
                state.record(JournalOperation::LogTruncate {
                    inode: node.inode,
                    size,
                });
                (stream.new_segment, stream.in_frame) = (true, false);
            }
        }
        Ok(())
    }

    /// Writes out the rest and lets go of the zone. Durable only if synced.
    pub fn close(&mut self) -> Result<()> {
        if self.closed {
            return Ok(());
        }
        self.check()?;
        let result = self.write_out(true);
        self.closed = true;
        self.leave();
        result
    }

    fn check(&self) -> Result<()> {
        match (&self.failed, self.closed) {
            (Some(error), _) => Err(error.clone()),
            (None, true) => Err(Error::Unmounted),
            (None, false) if self.shared().unmounted.load(Ordering::Acquire) => {
                Err(Error::Unmounted)
            }
            // After a failure of the drive, what is only buffered goes on: errors come with the
            // next write to it. RocksDB aborts where a second append to its info log fails.
            (None, false) => Ok(()),
        }
    }

    /// An error of a write that was never reported stays until it is, and after.
    fn sticky<T>(&mut self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result {
            // A log must not go on behind a piece that is missing. A plain file may try again
            // when there is space.
            let again =
                matches!(error, Error::NoSpace { .. }) && self.handle.node.kind == Kind::Plain;
            if !again {
                self.failed = Some(error.clone());
                let is_log = self.handle.node.kind == Kind::Log;
                self.handle.node.log_failed.store(is_log, Ordering::Release);
            }
        }
        result
    }

    fn chunk(&self) -> usize {
        match self.handle.node.kind {
            Kind::Plain => CHUNK,
            Kind::Log => log_record::MAX_PAYLOAD,
        }
    }

    /// What of the file is still to come, if that is known.
    fn want(&self) -> Want {
        if self.handle.node.kind == Kind::Log || self.expected_size == 0 {
            return self.class.into();
        }
        let body = self.handle.node.body.read();
        let rest = self.expected_size.saturating_sub(body.written());
        // It may become larger than was expected.
        let rest = rest.max(body.tail.len() as u64);
        Want::rest(
            self.class,
            rest,
            self.shared().device.geometry().zone_capacity,
        )
    }

    fn release(&self, stream: &mut Stream) {
        if let Some(slot) = stream.slot.take() {
            self.handle.shared.state.lock().release(&slot);
        }
    }

    /// The last writer of a file lets go of its zone.
    fn leave(&mut self) {
        if std::mem::replace(&mut self.left, true) {
            return;
        }
        let node = &*self.handle.node;
        let mut stream = node.writing.lock();
        if node.writers.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        self.release(&mut stream);
        let is_written = node.body.read().tail.is_empty();
        // Its notes go, so what the drive has instead must be named.
        if is_written && self.shared().unsynced.is_on() && node.kind == Kind::Log {
            self.put_into_frame(&mut stream);
            self.shared().unsynced.release(&mut stream.notes);
        }
    }

    /// Writes whole chunks, or with `all` everything.
    pub(crate) fn write_out(&mut self, all: bool) -> Result<()> {
        self.shared().check_mounted()?;
        let node = self.handle.node.clone();
        let mut zones = Appending {
            stream: node.writing.lock(),
            writer: self,
        };
        loop {
            let pending = node.body.read().tail.len();
            if pending == 0 || (!all && pending < zones.writer.chunk()) {
                return Ok(());
            }
            let written = appender::append(&mut zones, |zones, slot| {
                zones.writer.write_chunk(slot, &mut zones.stream)
            });
            zones.writer.sticky(written)?;
        }
    }

    /// Writes up to a chunk of the tail into `slot`; `None` if it has no room. The file can be read, and
    /// appended to, while the drive writes.
    fn write_chunk(&self, slot: &Arc<Slot>, stream: &mut Stream) -> Result<Option<()>> {
        let node = &*self.handle.node;
        let shared = &*self.handle.shared;
        let (tail, file_offset) = {
            let body = node.body.read();
            (body.tail.clone(), body.written())
        };
        let mut used = slot.fill();
        let at = ZoneAddress::new(slot.zone, *used);
        let fresh = match node.kind {
            Kind::Plain => {
                let bytes = &tail[..tail.len().min(CHUNK)];
                shared.write_extent(slot, &mut used, file_offset, bytes)?
            }
            Kind::Log => {
                let place = (node.inode, file_offset);
                let record = shared.write_record(slot, &mut used, place, &tail)?;
                record.map(|record| record.piece(file_offset))
            }
        };
        let Some(fresh) = fresh else { return Ok(None) };
        let end = *used;
        drop(used);
        let counter = match node.kind {
            Kind::Plain => &shared.counters.plain_written,
            Kind::Log => &shared.counters.log_written,
        };
        counter.fetch_add(end - at.offset, Ordering::Relaxed);
        let mut body = node.body.write();
        let length = fresh.length as usize;
        if node.kind == Kind::Plain && shared.cache_writes && self.class.is_read_soon() {
            let cache = &shared.cache;
            cache.put_written(node.inode, body.truncates, file_offset, &tail[..length]);
        }
        drop(tail);
        Arc::make_mut(&mut body.tail).drain(..length);
        let written = match node.kind {
            Kind::Plain => {
                let is_new = push_piece(&mut body.pieces, fresh);
                let piece = fresh;
                Some(Placed::Piece { piece, is_new })
            }
            Kind::Log => {
                body.pieces.push(fresh);
                let run_id = slot.run_id;
                // A run ends where another handle has truncated the file or written on elsewhere.
                let goes_on = !stream.new_segment
                    && body
                        .segments
                        .last()
                        .is_some_and(|s| s.run_id == run_id && s.limit == u64::MAX);
                let segment = (!goes_on).then(|| {
                    let segment = Segment {
                        file_offset,
                        at,
                        end: u64::MAX,
                        limit: u64::MAX,
                        run_id,
                    };
                    body.segments.push(segment);
                    Placed::Segment(segment)
                });
                stream.new_segment = false;
                stream.in_frame &= segment.is_none();
                segment
            }
        };
        drop(body);
        if let Some(written) = written {
            shared.register(&self.handle.node, written)?;
        }
        Ok(Some(()))
    }
}

/// A writer with the right to write out its file.
struct Appending<'a> {
    writer: &'a mut Writer,
    stream: MutexGuard<'a, Stream>,
}

impl Zones for Appending<'_> {
    type Open = Arc<Slot>;
    type Error = Error;
    const MAX_FAILED: u32 = 8;

    fn open(&mut self) -> Result<Arc<Slot>> {
        if let Some(slot) = &self.stream.slot {
            return Ok(slot.clone());
        }
        let writer = &*self.writer;
        let slot = writer.shared().acquire_slot(writer.want(), writer.need)?;
        self.stream.new_segment = true;
        Ok(self.stream.slot.insert(slot).clone())
    }

    fn leave(&mut self, slot: Arc<Slot>, why: Left<'_>) -> Result<()> {
        let Left::Failed(error) = why else {
            self.writer.release(&mut self.stream);
            return Ok(());
        };
        if self.writer.shared().abandon(&slot, error) {
            self.stream.slot = None;
        }
        self.writer.release(&mut self.stream);
        self.writer.handle.check_lost()
    }

    fn drive_error(error: &Error) -> Option<&ZoneError> {
        error.of_drive()
    }
}

/// What is on the drive and may not be durable yet.
pub(crate) struct Unsynced {
    shared: Arc<Shared>,
    node: Arc<Node>,
}

impl Unsynced {
    /// Makes it durable. Needs no writer: others may append to the file meanwhile.
    pub fn wait(self) -> Result<()> {
        let Self { shared, node } = self;
        shared.commit_file(&node)
    }
}

/// Whether LevelDB and RocksDB cannot open a database without writing a file of this name:
/// `CURRENT` is written as `NNNNNN.dbtmp` and then renamed.
fn is_vital(name: &str) -> bool {
    name == "CURRENT" || name.ends_with(".dbtmp")
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.leave();
    }
}
