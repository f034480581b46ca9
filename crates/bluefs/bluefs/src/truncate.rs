//! Truncates a file.

use crate::format::operation::{JournalOperation, Kind};
use crate::handle::Handle;
use crate::{Error, Result};
use device::ZonedDevice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Handle {
    /// Truncates the file to `size` bytes; [`Error::Invalid`] if it is shorter. `path` is for messages. Before a log on a
    /// drive file that keeps bytes becomes shorter, frames are written, which may find no space. If the host has no room to
    /// note what is left of a flushed tail, the log stays as it is.
    pub fn truncate(&self, path: &str, size: u64) -> Result<()> {
        let Self { shared, node } = self;
        let mut stream = node.writing.lock();
        // Without this lock a log only becomes longer.
        let now = node.body.read().size();
        // Bytes that were noted, also before a note failed, may have been written since to places that no frame names yet.
        let may_be_noted = node.kind == Kind::Log && shared.device.host_memory().is_some();
        if may_be_noted && !stream.in_frame && (1..now).contains(&size) {
            shared.write_frames()?;
            stream.in_frame = true;
        }
        let mut state = shared.state.lock();
        state.check()?;
        let mut body = node.body.write();
        if size > now {
            let (path, what) = (path.to_owned(), "the new size");
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
        let written = body.written();
        let left = size.checked_sub(written).map(|left| left as usize);
        let noted = left.filter(|_| node.kind == Kind::Log);
        let noted = &body.tail[..noted.unwrap_or(0)];
        let unsynced = &shared.unsynced;
        unsynced.shorten(&mut stream.notes, node.inode, written, noted)?;
        if let Some(left) = left {
            Arc::make_mut(&mut body.tail).truncate(left);
            return Ok(());
        }
        body.tail = Arc::default();
        body.modified_micros = shared.now();
        state.cache.forget(node.inode, body.truncates, written);
        let (gone, before) = body.truncate(size);
        node.named_in.store(state.next_batch, Ordering::Release);
        match node.kind {
            Kind::Plain => {
                let (inode, modified_micros) = (node.inode, body.modified_micros);
                let g = shared.device.geometry();
                let left = body.pieces.last().map_or(0, |p| p.blocks(g));
                drop(body);
                if let Some(piece) = before {
                    state.free(piece.at.zone, inode, 0, piece.blocks(g) - left);
                }
                for piece in gone {
                    state.free(piece.at.zone, inode, 1, piece.blocks(g));
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
}
