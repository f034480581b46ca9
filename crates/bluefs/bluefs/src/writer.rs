//! [`Writer`]: appends to a file.
//!
//! Bytes collect in the file's tail and are written a chunk at a time. A synchronous append to a log is one write (a
//! record padded to the block) and one flush. A synchronous append to a plain file is data, a journal frame, and one
//! flush for both: after a power cut the write pointer tells whether the data was written (docs/format/bluefs.md).

use crate::chunk::chunk;
use crate::format::operation::Kind;
use crate::handle::Handle;
use crate::node::Stream;
use crate::options::Lifetime;
use crate::shared::Shared;
use crate::slot::{Class, Slot, Want};
use crate::tenants::Need;
use crate::unsynced::ignore_until_synced;
use crate::{Error, Result};
use appender::{Left, Zones};
use device::ZonedDevice;
use runtime::sync::MutexGuard;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zone::ZoneError;

/// A file that is open for appending. If it is dropped without [`Writer::close`], bytes that were not synced are lost.
pub struct Writer {
    handle: Handle,
    path: String,
    class: Class,
    expected_size: u64,
    need: Need,
    failed: Option<Error>,
    closed: bool,
    /// It is no longer counted among the file's writers.
    left: bool,
    /// It may write while the file system is being unmounted.
    is_last: bool,
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
            is_last: false,
        }
    }

    fn shared(&self) -> &Shared {
        &self.handle.shared
    }

    /// Bytes in the file, with those that are not written yet.
    pub fn size(&self) -> u64 {
        self.handle.node.body.read().size()
    }

    /// Inode number: identifies the file while the file system is mounted.
    pub fn inode(&self) -> u64 {
        self.handle.node.inode
    }

    /// Sets the expected lifetime of a plain file; files of the same lifetime share zones. Logs ignore it.
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

    /// Sets the expected size of the file; a file that fills at least half a zone gets one of its own.
    pub fn set_expected_size(&mut self, bytes: u64) {
        self.expected_size = bytes;
    }

    /// Sets whether the file is written in the background, so that no client waits for it, as for a compaction: it
    /// then leaves the last free zones to other files.
    pub fn set_background(&mut self, background: bool) {
        self.need = match (self.need, background) {
            (Need::Waited, true) => Need::Background,
            (Need::Background, false) => Need::Waited,
            (need, _) => need,
        };
    }

    /// Appends bytes. They are durable after a later [`Self::sync`]. After an error, [`Self::size`] tells how many of
    /// them the file has taken.
    pub fn append(&mut self, data: &[u8]) -> Result<()> {
        self.check()?;
        let asked = match self.handle.node.kind {
            Kind::Plain => &self.shared().counters.plain_bytes_asked,
            Kind::Log => &self.shared().counters.log_bytes_asked,
        };
        asked.fetch_add(data.len() as u64, Ordering::Relaxed);
        let chunk = chunk(self.handle.node.kind);
        let mut data = data;
        while !data.is_empty() {
            let full = {
                let mut body = self.handle.node.body.write();
                self.check_not_closing()?;
                if body.tail.is_empty() {
                    body.tail_since = Some(self.shared().runtime.now());
                }
                let take = data.len().min(chunk.saturating_sub(body.tail.len()));
                Arc::make_mut(&mut body.tail).extend_from_slice(&data[..take]);
                data = &data[take..];
                body.tail.len() >= chunk
            };
            if full {
                self.write_out(false)?;
            }
        }
        Ok(())
    }

    /// Makes the bytes appended to a log survive the process, if the mount keeps unsynced bytes
    /// ([`crate::MountOptions::keep_unsynced`]). Only [`Self::sync`] makes them durable. Readers see them without
    /// either call.
    pub fn flush(&mut self) -> Result<()> {
        self.check()?;
        if self.handle.node.kind == Kind::Plain || !self.shared().unsynced.is_wanted() {
            return Ok(());
        }
        self.shared().end.check()?;
        if self.keep()? {
            return Ok(());
        }
        self.write_out(true)?;
        let result = self.put_into_frame(&mut self.handle.node.writing.lock());
        self.sticky(result)
    }

    /// Notes the tail beside the drive. False if the tail has to be written out instead.
    fn keep(&mut self) -> Result<bool> {
        let node = self.handle.node.clone();
        if !self.shared().unsynced.is_on() {
            // Beside a device nothing is noted, and the log is written out at an age. What that could not write it will not
            // try again.
            let has_notes = self.shared().device.host_memory().is_some();
            return Ok(!has_notes && !node.log_failed.load(Ordering::Acquire));
        }
        let mut stream = node.writing.lock();
        self.check_not_closing()?;
        let named = self.put_into_frame(&mut stream);
        self.sticky(named)?;
        let body = node.body.read();
        let unsynced = &self.shared().unsynced;
        Ok(unsynced.note(&mut stream.notes, node.inode, body.written(), &body.tail))
    }

    /// Writes the journal frames that name the file and its segments, without a flush: if the process dies, changes
    /// that are in no frame are lost.
    fn put_into_frame(&self, stream: &mut Stream) -> Result<()> {
        if !stream.in_frame {
            self.shared().write_frames()?;
            stream.in_frame = true;
        }
        Ok(())
    }

    /// Writes out the whole chunks of what was appended, without a flush.
    pub fn range_sync(&mut self) -> Result<()> {
        self.check()?;
        self.write_out(false)
    }

    /// Makes everything appended so far durable.
    pub fn sync(&mut self) -> Result<()> {
        let result = self.begin_sync()?();
        self.sticky(result)
    }

    /// Writes out everything appended so far. The returned closure makes it durable without the writer, so that others
    /// may append meanwhile; its result must be passed to [`Self::sticky`].
    pub(crate) fn begin_sync(&mut self) -> Result<impl FnOnce() -> Result<()> + use<>> {
        self.check()?;
        self.write_out(true)?;
        let result = self.handle.check_lost();
        self.sticky(result)?;
        let (shared, node) = (self.handle.shared.clone(), self.handle.node.clone());
        Ok(move || shared.commit_file(&node))
    }

    /// Truncates the file to `size` bytes.
    pub fn truncate(&mut self, size: u64) -> Result<()> {
        self.check()?;
        let node = &self.handle.node;
        let is_cut = (1..node.body.read().size()).contains(&size);
        // After a note has failed, none takes the place of those that a truncation invalidates.
        if is_cut && node.kind == Kind::Log && !self.shared().unsynced.is_on() {
            self.flush()?;
        }
        self.handle.truncate(&self.path, size)
    }

    /// Writes out the tail and releases the zone. The bytes are durable only if they were synced.
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

    /// As [`Self::close`], also while the file system is being unmounted.
    pub(crate) fn close_at_the_end(&mut self) -> Result<()> {
        self.is_last = true;
        self.close()
    }

    /// Fails once an unmount has begun, for all but its own writers. The caller holds the file's `writing` or its body:
    /// what it appends or notes before the unmount begins is then found by the unmount, which also takes the `writing`
    /// of every file with writers.
    fn check_not_closing(&self) -> Result<()> {
        match self.shared().closing.load(Ordering::Acquire) && !self.is_last {
            true => Err(Error::Unmounted),
            false => Ok(()),
        }
    }

    fn check(&self) -> Result<()> {
        match (&self.failed, self.closed) {
            (Some(error), _) => Err(error.clone()),
            (None, true) => Err(Error::Unmounted),
            (None, false) if self.shared().unmounted.load(Ordering::Acquire) => {
                Err(Error::Unmounted)
            }
            // A failure of the drive does not fail appends that are only buffered; the next write returns the error.
            // RocksDB aborts if a second append to its info log fails.
            (None, false) => Ok(()),
        }
    }

    /// Keeps an error, so that every later call returns it.
    pub(crate) fn sticky<T>(&mut self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result {
            // A log must not continue after a missing piece. A plain file may retry when there is space.
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

    /// The zone to ask for: class, and the bytes still to come if the expected size is known.
    fn want(&self) -> Want {
        if self.handle.node.kind == Kind::Log || self.expected_size == 0 {
            return self.class.into();
        }
        let body = self.handle.node.body.read();
        let rest = self.expected_size.saturating_sub(body.written());
        // The file may become larger than expected.
        let rest = rest.max(body.tail.len() as u64);
        Want::rest(
            self.class,
            rest,
            self.shared().device.geometry().least_capacity(),
        )
    }

    fn release(&self, stream: &mut Stream) {
        if let Some(slot) = stream.slot.take() {
            self.handle.shared.state.lock().release(&slot);
        }
    }

    /// Removes this writer from the file's writers; the last one releases the zone.
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
        let is_written = {
            let mut body = node.body.write();
            // A file that is only read from now on needs no room for a chunk.
            Arc::make_mut(&mut body.tail).shrink_to_fit();
            body.tail.is_empty()
        };
        let is_noted = self.shared().unsynced.is_on() && node.kind == Kind::Log;
        // After the end, the file beside the drive is the next mount's. Before the notes of the log are released, the
        // frames must name what the drive has.
        if is_written
            && is_noted
            && self.shared().end.check().is_ok()
            && ignore_until_synced(self.put_into_frame(&mut stream))
        {
            let unsynced = &self.shared().unsynced;
            unsynced.release(&mut stream.notes, node.inode);
        }
    }

    /// Writes out whole chunks of the tail, or with `all` all of it.
    pub(crate) fn write_out(&mut self, all: bool) -> Result<()> {
        self.shared().end.check()?;
        let node = self.handle.node.clone();
        let mut zones = Appending {
            stream: node.writing.lock(),
            writer: self,
        };
        loop {
            let pending = node.body.read().tail.len();
            if pending == 0 || (!all && pending < chunk(node.kind)) {
                return Ok(());
            }
            zones.writer.check_not_closing()?;
            let written = appender::append(&mut zones, |zones, slot| {
                let (handle, class) = (&zones.writer.handle, zones.writer.class);
                handle.write_chunk(class, slot, &mut zones.stream)
            });
            zones.writer.sticky(written)?;
            node.log_failed.store(false, Ordering::Release);
        }
    }
}

/// A writer that holds the right to write out its file.
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

/// Whether LevelDB and RocksDB need to write a file of this name to open a database: `CURRENT` is written as
/// `NNNNNN.dbtmp` and then renamed.
fn is_vital(name: &str) -> bool {
    name == "CURRENT" || name.ends_with(".dbtmp")
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use crate::{BlueFs, FormatOptions, MountOptions, Role};
    use device::{FileDrive, MemoryDrive, ZonedDevice};
    use runtime::Runtime;
    use std::path::Path;
    use std::sync::Arc;
    use zone::{Geometry, ZoneKind};

    fn geometry() -> Geometry {
        Geometry {
            block_size: 4096,
            zone_size: 8 << 20,
            zone_capacity: 8 << 20,
            zone_count: 16,
            conventional_zones: 0,
            conventional_parts: 1,
            sequential_kind: ZoneKind::SequentialWriteRequired,
            max_open_zones: 0,
            max_active_zones: 0,
            max_append_bytes: 0,
        }
    }

    fn format(drive: &dyn ZonedDevice) {
        let options = FormatOptions {
            uuid: [3; 16],
            role: Role::Alone,
            copies: 1,
            force: false,
        };
        BlueFs::format(drive, &options).unwrap();
    }

    #[test]
    fn a_file_that_nobody_writes_has_no_room_for_a_chunk_in_memory() {
        let drive = Arc::new(MemoryDrive::new(geometry()).unwrap());
        format(&*drive);
        let options = MountOptions {
            runtime: Runtime::seeded(1),
            ..MountOptions::default()
        };
        let fs = BlueFs::mount_alone(drive, options).unwrap();
        for path in ["/1.sst", "/2.log"] {
            let mut writer = fs.create(path).unwrap();
            writer.append(&[7; 3 << 20]).unwrap();
            writer.sync().unwrap();
            let node = writer.handle.node.clone();
            drop(writer);
            assert_eq!(node.body.read().tail.capacity(), 0, "{path}");
        }
    }

    #[test]
    fn what_a_truncation_leaves_of_a_flushed_tail_is_noted_all_the_time() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("d.zoned");
        format(&FileDrive::create(&path, &geometry(), "test").unwrap());
        let mounted = |path: &Path| {
            let options = MountOptions {
                keep_unsynced: true,
                runtime: Runtime::seeded(1),
                ..MountOptions::default()
            };
            BlueFs::mount_alone(Arc::new(FileDrive::open(path).unwrap()), options).unwrap()
        };
        let fs = mounted(&path);
        let mut log = fs.create("/1.log").unwrap();
        log.append(&[7; 100]).unwrap();
        // What changes nothing asks for no frame: there may be no space for it.
        log.handle.truncate("/1.log", 100).unwrap();
        log.handle.truncate("/1.log", 101).unwrap_err();
        assert!(!log.handle.node.writing.lock().in_frame);
        log.flush().unwrap();
        // The process is killed before the writer flushes what is left.
        log.handle.truncate("/1.log", 50).unwrap();
        drop((log, fs));
        let fs = mounted(&path);
        assert_eq!(fs.metadata("/1.log").unwrap().size, 50);
        drop(fs);
        let beside = |name: &str| directory.path().join(format!("{name}.unsynced"));
        for (name, fails, more) in [
            ("/2.log", false, 2 << 20),
            ("/3.log", true, 2 << 20),
            ("/4.log", true, 0),
        ] {
            let fs = mounted(&path);
            let mut log = fs.create(name).unwrap();
            log.append(&[7; 100]).unwrap();
            log.flush().unwrap();
            // What was flushed has been written out since, to a place that no frame names, or is only noted.
            log.append(&vec![7; more]).unwrap();
            if fails {
                let error = std::io::Error::other("of another log's note");
                assert!(!fs.shared.unsynced.noted(Err(error)));
            }
            let cut = log.handle.truncate(name, 80);
            assert!(cut.is_ok() || more == 0, "{name}: {cut:?}");
            // As a kill leaves it: no writer has ended.
            let copy = directory.path().join("copy");
            std::fs::copy(&path, &copy).unwrap();
            std::fs::copy(beside("d.zoned"), beside("copy")).unwrap();
            let left = mounted(&copy).metadata(name).unwrap().size;
            assert!(left >= 80, "{name}: {left}");
            log.truncate(80).unwrap();
            fs.sync_metadata().unwrap();
            drop((log, fs));
            assert_eq!(mounted(&path).metadata(name).unwrap().size, 80);
        }
    }
}
