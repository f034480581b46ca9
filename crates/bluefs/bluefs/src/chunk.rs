//! Writes a chunk of a file's tail to the drive.

use crate::Result;
use crate::format::log_record;
use crate::format::operation::Kind;
use crate::handle::Handle;
use crate::node::{Segment, Stream, push_piece};
use crate::shared::Placed;
use crate::slot::{Class, Slot};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use zone::ZoneAddress;

/// Most bytes of a plain file that are written at once.
const CHUNK: usize = 1 << 20;

/// Most bytes of a file that are written at once.
pub(crate) fn chunk(kind: Kind) -> usize {
    match kind {
        Kind::Plain => CHUNK,
        Kind::Log => log_record::MAX_PAYLOAD,
    }
}

impl Handle {
    /// Writes up to a chunk of the tail into `slot`; `None` if the zone has no room. The file can be read and appended
    /// to while the drive writes.
    pub fn write_chunk(
        &self,
        class: Class,
        slot: &Arc<Slot>,
        stream: &mut Stream,
    ) -> Result<Option<()>> {
        let Self { shared, node } = self;
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
                node.appended.fetch_add(1, Ordering::AcqRel);
                let moved = node.moved.load(Ordering::Acquire);
                stream.new_segment |= std::mem::replace(&mut stream.moved, moved) != moved;
                let place = (node.inode, file_offset);
                let record = shared.write_record(slot, &mut used, place, &tail)?;
                record.map(|record| record.piece(file_offset))
            }
        };
        let Some(fresh) = fresh else { return Ok(None) };
        let end = *used;
        drop(used);
        let counter = match node.kind {
            Kind::Plain => &shared.counters.plain_bytes_written,
            Kind::Log => &shared.counters.log_bytes_written,
        };
        counter.fetch_add(end - at.offset, Ordering::Relaxed);
        let mut body = node.body.write();
        let length = fresh.length as usize;
        if node.kind == Kind::Plain && shared.cache_writes && class.is_read_soon() {
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
                // A run ends where another handle has truncated the file or written to another zone.
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
            shared.register(node, written)?;
        }
        Ok(Some(()))
    }
}
