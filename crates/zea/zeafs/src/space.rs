//! The zones of files: which are appended to, the live bytes of each, and which can be reset.

use crate::error::{Error, Result};
use crate::format::operation::{Piece, sums};
use crate::host_room::HostRoom;
use crate::streams::Stream;
use appender::Flusher;
use device::ZonedDevice;
use runtime::Runtime;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use zea::{Instance, LogicalAddress, Options, Sequence, Sharing};
use zone::{Geometry, ZoneDescriptor, ZoneId};
use zone_alloc::{Ladder, Tenant};

/// Zones that the cleaner may need before it frees one.
pub(crate) const KEPT_FOR_CLEANER: u32 = 2;
/// Fewest sequential zones that a file system can work with: the cleaner's, and two for files.
pub(crate) const LEAST_ZONES: u32 = KEPT_FOR_CLEANER + 2;
/// Number of zones that may fail under one write before the write fails.
const MAX_FAILED: u32 = 3;

const CLEANER: usize = 0;
const FILES: usize = 1;

pub(crate) const fn ladder() -> Ladder<2> {
    Ladder([Tenant::new(KEPT_FOR_CLEANER, 0), Tenant::new(0, 1)])
}

/// The zones of files.
pub(crate) struct Space {
    pub device: Arc<dyn ZonedDevice>,
    pub flusher: Arc<Flusher>,
    sharing: Sharing<2>,
    sequence: Sequence,
    pub runtime: Runtime,
    pub host: HostRoom,
    streams: BTreeMap<Stream, Instance>,
    /// Live bytes of each zone with extents: those of files and of deleted files that are still read.
    live: BTreeMap<ZoneId, u64>,
    /// Bytes written to each zone that is no longer appended to, without labels.
    full: BTreeMap<ZoneId, u64>,
    /// Zones that were reset, each with the flush that makes the reset durable.
    fresh: BTreeMap<ZoneId, u64>,
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Space")
            .field("streams", &self.streams)
            .field("live", &self.live)
            .field("full", &self.full)
            .finish_non_exhaustive()
    }
}

impl Space {
    /// Starts from a report of the zones for files.
    pub fn new(device: Arc<dyn ZonedDevice>, report: &[ZoneDescriptor], runtime: Runtime) -> Self {
        let sharing = Sharing::new(ladder(), device.geometry(), report);
        Self {
            device,
            flusher: Arc::default(),
            sharing,
            sequence: Sequence::default(),
            runtime,
            host: HostRoom::default(),
            streams: BTreeMap::new(),
            live: BTreeMap::new(),
            full: BTreeMap::new(),
            fresh: BTreeMap::new(),
        }
    }

    /// Makes everything durable that was written so far.
    pub fn flush(&self) -> Result<()> {
        Ok(self.flusher.flush(|| self.device.flush())?)
    }

    /// Waits until flush number `flush` has been done.
    pub fn reach(&self, flush: u64) -> Result<()> {
        Ok(self.flusher.reach(flush, || self.device.flush())?)
    }

    /// Records at mount a piece of a file in a zone of which `written` bytes are written.
    pub fn claim(&mut self, piece: &Piece, written: u64) {
        let zone = piece.at.zone;
        self.sharing.claim(FILES, zone, false);
        self.full.insert(zone, written);
        *self.live.entry(zone).or_default() += piece.stored;
    }

    /// Records that a piece is dead, durably.
    pub fn drop_piece(&mut self, piece: &Piece) {
        if let Some(live) = self.live.get_mut(&piece.at.zone) {
            *live = live.saturating_sub(piece.stored);
        }
    }

    /// Zones without live bytes that are not appended to, which can be reset.
    pub fn dead(&self) -> Vec<ZoneId> {
        let dead = self.full.keys().filter(|zone| self.live_in(**zone) == 0);
        dead.copied().collect()
    }

    /// Resets [`Self::dead`] zones. The changes that left them without live bytes must be durable.
    pub fn reset(&mut self, zones: &[ZoneId]) -> Result<()> {
        let device = &self.device;
        let reset = |zone| device.reset(zone);
        let resets = appender::reset_or_retire(zones, reset)?;
        for zone in zones {
            self.full.remove(zone);
            self.live.remove(zone);
        }
        for zone in resets.empty {
            self.fresh.insert(zone, self.flusher.next());
            self.sharing.give_back(zone);
        }
        for zone in resets.broken {
            self.sharing.retire(zone);
        }
        Ok(())
    }

    fn live_in(&self, zone: ZoneId) -> u64 {
        self.live.get(&zone).copied().unwrap_or(0)
    }

    /// Zones that are no longer appended to, with the bytes written to each.
    pub fn full(&self) -> impl Iterator<Item = (ZoneId, u64)> {
        self.full.iter().map(|(zone, written)| (*zone, *written))
    }

    pub fn geometry(&self) -> &Geometry {
        self.device.geometry()
    }

    /// Free zones that files may take.
    pub fn free_for_files(&self) -> u32 {
        self.sharing.free_for(FILES)
    }

    /// Bytes that a piece of `bytes` bytes takes on the drive.
    pub fn stored(&self, bytes: u64) -> u64 {
        let g = self.geometry();
        g.round_up(bytes) + u64::from(g.block_size)
    }

    /// Bytes of file data that certainly fit on the drive without cleaning.
    pub fn room_for_files(&self) -> u64 {
        self.room_in(|stream| matches!(stream, Stream::Files(_)))
    }

    /// Bytes of data that certainly can be moved without a zone that cleaning may need.
    pub fn room_to_move(&self) -> u64 {
        self.room_in(|stream| *stream == Stream::Moved)
    }

    /// Bytes of data that certainly fit into the zones of these streams and the zones that are free for files.
    fn room_in(&self, is_one: impl Fn(&Stream) -> bool) -> u64 {
        let g = self.geometry();
        // The rest of a zone below the smallest piece stays unused, and a piece that is split between zones has
        // metadata in both.
        let lost = self.least_room() + u64::from(g.block_size);
        let streams = self.streams.iter().filter(|(stream, _)| is_one(stream));
        let open = streams.map(|(_, instance)| instance.room().saturating_sub(lost));
        let empty = Instance::largest(g).saturating_sub(lost);
        open.sum::<u64>() + u64::from(self.free_for_files()) * empty
    }

    /// A zone with less room than this is not appended to any more.
    pub fn least_room(&self) -> u64 {
        4 * u64::from(self.geometry().block_size)
    }

    pub fn live_bytes(&self) -> u64 {
        self.live.values().sum()
    }

    /// Stops appending to the stream's zone, which is full or has failed.
    fn leave(&mut self, stream: Stream, is_full: bool) {
        let Some(instance) = self.streams.remove(&stream) else {
            return;
        };
        let zone = instance.zone();
        if !is_full && let Err(error) = instance.finish() {
            tracing::warn!(%error, %zone, "a zone cannot be finished");
        }
        // The unwritten rest of a finished zone is usable only after a reset, too.
        let labels = 2 * u64::from(self.geometry().block_size);
        self.full
            .insert(zone, instance.written().saturating_sub(labels));
        self.live.entry(zone).or_default();
        self.sharing.no_longer_active(zone);
    }

    /// Finishes the zones of all streams, which frees the drive's active resources.
    pub fn leave_all(&mut self) {
        let streams: Vec<Stream> = self.streams.keys().copied().collect();
        for stream in streams {
            self.leave(stream, false);
        }
    }

    /// Returns the room in the stream's zone, or opens a new zone for it; [`Error::NoSpace`] if there is none.
    fn open(&mut self, stream: Stream) -> Result<u64> {
        let least = self.least_room();
        if let Some(instance) = self.streams.get(&stream) {
            let room = instance.room();
            if room >= least.min(Instance::largest(self.geometry())) {
                return Ok(room);
            }
            let is_full = instance.written() >= self.geometry().zone_capacity;
            self.leave(stream, is_full);
        }
        let tenant = match stream {
            Stream::Moved => CLEANER,
            Stream::Files(_) => FILES,
        };
        let zone = self.sharing.take(tenant).ok_or(Error::NoSpace)?;
        // If a crash lost the reset, a write pointer would be above the extents that the next frame names.
        let reset = self.fresh.remove(&zone).unwrap_or(0);
        if let Err(error) = self.reach(reset) {
            self.fresh.insert(zone, reset);
            self.sharing.give_back(zone);
            return Err(error);
        }
        let made = Instance::format(
            self.device.clone(),
            zone,
            Options::default(),
            self.sequence.clone(),
            &self.runtime,
        );
        match made {
            Ok(instance) => {
                let room = instance.room();
                self.streams.insert(stream, instance);
                self.live.entry(zone).or_default();
                Ok(room)
            }
            Err(error) => {
                let error = Error::from(error);
                let is_of_limit = error.of_drive().is_some_and(appender::is_of_limit);
                match error.is_no_space() || is_of_limit {
                    // The zone is as good as others.
                    true => self.sharing.give_back(zone),
                    false => self.sharing.retire(zone),
                }
                Err(error)
            }
        }
    }

    /// A stream whose zone has room, for one that gets no zone.
    pub fn with_room(&self) -> Option<Stream> {
        let least = self.least_room();
        let mut streams = self.streams.iter();
        streams
            .find(|(_, instance)| instance.room() >= least)
            .map(|(stream, _)| *stream)
    }

    /// Appends as much of `data` as the stream's zone takes; returns it as a piece of a file at `file_offset`.
    pub fn put(
        &mut self,
        stream: Stream,
        inode: u64,
        file_offset: u64,
        data: &[u8],
    ) -> Result<Piece> {
        let mut failed = 0;
        loop {
            let result = self.try_put(stream, inode, file_offset, data);
            let error = match result {
                Ok(piece) => return Ok(piece),
                Err(error) => error,
            };
            let of_zone = error.of_drive().is_some_and(appender::is_of_zone);
            if !of_zone || failed == MAX_FAILED {
                return Err(error);
            }
            tracing::warn!(%error, "a write failed; going on in another zone");
            self.leave(stream, false);
            failed += 1;
        }
    }

    fn try_put(
        &mut self,
        stream: Stream,
        inode: u64,
        file_offset: u64,
        data: &[u8],
    ) -> Result<Piece> {
        let room = self.open(stream)?;
        let take = usize::try_from(room).unwrap_or(usize::MAX).min(data.len());
        let data = data.get(..take).unwrap_or(data);
        let instance = self.streams.get(&stream).ok_or(Error::NoSpace)?;
        // What waits on an answer of the host takes room on its disk from now on.
        self.host = HostRoom::default();
        let placed = instance.put(LogicalAddress(inode), data)?;
        *self.live.entry(placed.at.zone).or_default() += placed.stored;
        Ok(Piece {
            file_offset,
            at: placed.at,
            length: placed.length,
            stored: placed.stored,
            sums: sums(data),
        })
    }
}
