//! The zones of files: which are appended to, how much of each is live, and which can be reset.

use crate::error::{Error, Result};
use crate::format::operation::{Piece, sums};
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

/// Zones that one who moves live data may need before it gains one.
pub(crate) const KEPT_FOR_CLEANER: u32 = 2;
/// Sequential zones without which nothing goes on: the cleaner's, and two for files.
pub(crate) const LEAST_ZONES: u32 = KEPT_FOR_CLEANER + 2;
/// So many zones may fail under one write before that fails.
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
    runtime: Runtime,
    streams: BTreeMap<Stream, Instance>,
    /// Of each zone with extents: bytes that a file, or a reader of one that is gone, still has.
    live: BTreeMap<ZoneId, u64>,
    /// Bytes that were written to a zone that is appended to no more, labels left out.
    full: BTreeMap<ZoneId, u64>,
    /// Zones that were reset, each with the flush that makes that durable.
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
    /// Over a report of the zones that are for files.
    pub fn new(device: Arc<dyn ZonedDevice>, report: &[ZoneDescriptor], runtime: Runtime) -> Self {
        let sharing = Sharing::new(ladder(), device.geometry(), report);
        Self {
            device,
            flusher: Arc::default(),
            sharing,
            sequence: Sequence::default(),
            runtime,
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

    /// Sees to it that a flush has been done.
    pub fn reach(&self, flush: u64) -> Result<()> {
        Ok(self.flusher.reach(flush, || self.device.flush())?)
    }

    /// A mount has found bytes of a file in a zone, of which so much is written.
    pub fn claim(&mut self, piece: &Piece, written: u64) {
        let zone = piece.at.zone;
        self.sharing.claim(FILES, zone, false);
        self.full.insert(zone, written);
        *self.live.entry(zone).or_default() += piece.stored;
    }

    /// Nobody has a piece any more, and that is durable.
    pub fn drop_piece(&mut self, piece: &Piece) {
        if let Some(live) = self.live.get_mut(&piece.at.zone) {
            *live = live.saturating_sub(piece.stored);
        }
    }

    /// Zones without live bytes that nobody appends to, to be reset.
    pub fn dead(&self) -> Vec<ZoneId> {
        let dead = self.full.keys().filter(|zone| self.live_in(**zone) == 0);
        dead.copied().collect()
    }

    /// Resets zones that are [`Self::dead`], which has to be durable.
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

    /// Zones that are appended to no more, with the bytes that were written to each.
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

    /// Bytes of the drive that so many bytes of a file take as one piece.
    pub fn stored(&self, bytes: u64) -> u64 {
        let g = self.geometry();
        g.round_up(bytes) + u64::from(g.block_size)
    }

    /// Bytes of the drive that pieces of files can certainly take without anything being moved.
    pub fn room_for_files(&self) -> u64 {
        let g = self.geometry();
        // A zone is left with less than the smallest piece, and a piece that goes on in another zone has metadata in both.
        let lost = self.least_room() + u64::from(g.block_size);
        let files = self.streams.iter();
        let files = files.filter(|(stream, _)| matches!(stream, Stream::Files(_)));
        let open = files.map(|(_, instance)| instance.room().saturating_sub(lost));
        let empty = Instance::largest(g).saturating_sub(lost);
        open.sum::<u64>() + u64::from(self.free_for_files()) * empty
    }

    /// Room of a zone below which it is left.
    fn least_room(&self) -> u64 {
        4 * u64::from(self.geometry().block_size)
    }

    pub fn live_bytes(&self) -> u64 {
        self.live.values().sum()
    }

    /// The zone that a stream appends to has no room, or failed.
    fn leave(&mut self, stream: Stream, is_full: bool) {
        let Some(instance) = self.streams.remove(&stream) else {
            return;
        };
        let zone = instance.zone();
        if !is_full && let Err(error) = instance.finish() {
            tracing::warn!(%error, %zone, "a zone cannot be finished");
        }
        // What a finish left unwritten comes back with a reset too.
        let labels = 2 * u64::from(self.geometry().block_size);
        self.full
            .insert(zone, instance.written().saturating_sub(labels));
        self.live.entry(zone).or_default();
        self.sharing.no_longer_active(zone);
    }

    /// All streams leave their zones: what was written is known, and the drive has its active zones back.
    pub fn leave_all(&mut self) {
        let streams: Vec<Stream> = self.streams.keys().copied().collect();
        for stream in streams {
            self.leave(stream, false);
        }
    }

    /// Room at the stream's zone, or at a new one; [`Error::NoSpace`] if there is none.
    fn open(&mut self, stream: Stream) -> Result<u64> {
        let least = self.least_room();
        if let Some(instance) = self.streams.get(&stream) {
            let room = instance.room();
            if room >= least.min(Instance::largest(self.geometry())) {
                return Ok(room);
            }
            self.leave(stream, room == 0);
        }
        let tenant = match stream {
            Stream::Moved => CLEANER,
            Stream::Files(_) => FILES,
        };
        let zone = self.sharing.take(tenant).ok_or(Error::NoSpace)?;
        // A crash that takes the reset must not leave a write pointer above what the next frame names.
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
                self.sharing.retire(zone);
                Err(error.into())
            }
        }
    }

    /// A stream that still has room, for one that gets no zone.
    pub fn with_room(&self) -> Option<Stream> {
        let least = self.least_room();
        let mut streams = self.streams.iter();
        streams
            .find(|(_, instance)| instance.room() >= least)
            .map(|(stream, _)| *stream)
    }

    /// Appends as much of `data` as the stream's zone takes: where it lies, as a piece of a file at `file_offset`.
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
