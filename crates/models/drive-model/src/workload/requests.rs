//! The requests of a workload: where they go, in order or at random.

use crate::model::Model;
use crate::random::Random;
use crate::request::{BLOCK_BYTES, Lba, Request};
use crate::time::Time;
use zone::{ZoneDescriptor, ZoneId, ZoneKind};

/// Most bytes of a request, as over NBD.
const MOST_BYTES: u64 = 32 << 20;

/// In which order a workload asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Reads from the first byte on.
    Read,
    /// Writes from the first byte on.
    Write,
    /// Reads in random places.
    RandomRead,
    /// Writes in random places.
    RandomWrite,
}

impl Order {
    /// All, each with its name (fio's) and what it asks.
    pub const ALL: [(&str, Self, &str); 4] = [
        ("read", Self::Read, "Reads from the first byte on"),
        ("write", Self::Write, "Writes from the first byte on"),
        ("randread", Self::RandomRead, "Reads in random places"),
        ("randwrite", Self::RandomWrite, "Writes in random places"),
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        let found = Self::ALL.into_iter().find(|(_, order, _)| *order == self);
        found.map_or("", |(name, ..)| name)
    }
}

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Workload {
    /// In which order.
    pub order: Order,
    /// Bytes of a request: whole blocks, 32 MiB at most; random ones begin at multiples of it.
    pub request_bytes: u64,
    /// Only the first so many bytes of the drive.
    pub size_bytes: Option<u64>,
    /// Another one gives other random places.
    pub seed: u64,
}

/// Why a drive has no such requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoRequests {
    /// A size that no request to a model has.
    #[error("{bytes} bytes are no size of requests to a model")]
    RequestBytes {
        /// The size asked for.
        bytes: u64,
    },
    /// The drive is smaller.
    #[error("the drive has {bytes} bytes")]
    Beyond {
        /// Of the drive.
        bytes: u64,
    },
    /// None fits.
    #[error("no request of {bytes} bytes has a place")]
    NoPlace {
        /// Of a request.
        bytes: u64,
    },
    /// Zones are written in order, and it asks for writes in random places.
    #[error("has zones that are written in order")]
    OnlyInOrder,
    /// No zone has anything that could be read.
    #[error("has nothing in its zones that could be read")]
    NothingWritten,
}

/// Blocks in one piece.
struct Region {
    first: u64,
    /// Requests that fit into those in front of it.
    before: u64,
}

/// See the head of this file. In order they end with the drive, at random never.
pub struct Requests {
    order: Order,
    /// Blocks of each.
    blocks: u64,
    /// Where they may go: a drive with zones may have gaps between them.
    extents: Vec<Region>,
    /// How many fit.
    slots: u64,
    /// How many were made.
    made: u64,
    random: Random,
}

impl Requests {
    /// Those of a workload on a drive as it is `now`: at another time others.
    ///
    /// # Errors
    /// The drive has no such requests, or no place for them.
    pub fn new(workload: &Workload, model: &dyn Model, now: Time) -> Result<Self, NoRequests> {
        let bytes = workload.request_bytes;
        if bytes == 0 || !bytes.is_multiple_of(BLOCK_BYTES) || bytes > MOST_BYTES {
            return Err(NoRequests::RequestBytes { bytes });
        }
        let blocks = bytes / BLOCK_BYTES;
        let size = workload.size_bytes.map(|size| size / BLOCK_BYTES);
        let behind = size.unwrap_or(model.blocks());
        if behind > model.blocks() {
            let bytes = model.blocks() * BLOCK_BYTES;
            return Err(NoRequests::Beyond { bytes });
        }
        let mut slots = 0;
        let mut extents = Vec::new();
        for (first, length) in places(workload.order, model)? {
            let fit = length.min(behind.saturating_sub(first)) / blocks;
            if fit > 0 {
                extents.push(Region {
                    first,
                    before: slots,
                });
            }
            slots += fit;
        }
        if slots == 0 {
            return Err(NoRequests::NoPlace { bytes });
        }
        Ok(Self {
            order: workload.order,
            blocks,
            extents,
            slots,
            made: 0,
            random: Random::new(workload.seed.wrapping_add(now.nanos())),
        })
    }

    /// The first block of a request, numbered in order.
    fn place(&self, slot: u64) -> u64 {
        let behind = self.extents.partition_point(|extent| extent.before <= slot);
        let extent = &self.extents[behind - 1];
        extent.first + (slot - extent.before) * self.blocks
    }
}

/// First block and length of every piece of the drive that such requests may go to. What was never written
/// is answered without a look at the medium where zones have to be written in order: as in fio, nothing is
/// read there.
fn places(order: Order, model: &dyn Model) -> Result<Vec<(u64, u64)>, NoRequests> {
    let Some(zones) = model.zones() else {
        return Ok(vec![(0, model.blocks())]);
    };
    let geometry = zones.geometry();
    let all = zones.report(ZoneId(0), geometry.zone_count);
    let strict = geometry.sequential_kind == ZoneKind::SequentialWriteRequired;
    if strict {
        check(order, &all)?;
    }
    let place = |zone: &ZoneDescriptor| {
        let free = strict && zone.write_pointer_valid();
        let (from, to) = match order {
            Order::Read | Order::RandomRead if free => (0, zone.write_pointer),
            Order::Write if free => (zone.write_pointer, zone.capacity),
            _ => (0, zone.capacity),
        };
        let first = (geometry.start(zone.id).0 + from) / BLOCK_BYTES;
        (first, (to - from) / BLOCK_BYTES)
    };
    Ok(all.iter().map(place).collect())
}

/// Whether it can be asked of zones that are written in order.
fn check(order: Order, zones: &[ZoneDescriptor]) -> Result<(), NoRequests> {
    let written = |zone: &ZoneDescriptor| zone.write_pointer_valid() && zone.write_pointer > 0;
    match order {
        Order::RandomWrite => Err(NoRequests::OnlyInOrder),
        Order::Read | Order::RandomRead if !zones.iter().any(written) => {
            Err(NoRequests::NothingWritten)
        }
        _ => Ok(()),
    }
}

impl Iterator for Requests {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let slot = match self.order {
            Order::Read | Order::Write if self.made == self.slots => return None,
            Order::Read | Order::Write => self.made,
            Order::RandomRead | Order::RandomWrite => self.random.below(self.slots),
        };
        self.made += 1;
        let (first, blocks) = (Lba(self.place(slot)), self.blocks as u32);
        Some(match self.order {
            Order::Read | Order::RandomRead => Request::read(first, blocks),
            Order::Write | Order::RandomWrite => Request::write(first, blocks),
        })
    }
}
