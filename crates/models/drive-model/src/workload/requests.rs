//! The requests of a workload, sequential or random.

use crate::model::Model;
use crate::random::Random;
use crate::request::{BLOCK_BYTES, Lba, Request};
use crate::time::Time;
use device::rules::ZoneTable;
use zone::{ZoneDescriptor, ZoneId, ZoneKind};

/// Most bytes of a request, as over NBD.
const MOST_BYTES: u64 = 32 << 20;

/// Order of a workload's requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Reads from the first byte on.
    Read,
    /// Writes from the first byte on.
    Write,
    /// Reads at random positions.
    RandomRead,
    /// Writes at random positions.
    RandomWrite,
}

impl Order {
    /// All orders, each with its name (fio's) and its description.
    pub const ALL: [(&str, Self, &str); 4] = [
        ("read", Self::Read, "Reads from the first byte on"),
        ("write", Self::Write, "Writes from the first byte on"),
        ("randread", Self::RandomRead, "Reads in random places"),
        ("randwrite", Self::RandomWrite, "Writes in random places"),
    ];

    /// The name, as in fio.
    pub fn name(self) -> &'static str {
        let found = Self::ALL.into_iter().find(|(_, order, _)| *order == self);
        found.map_or("", |(name, ..)| name)
    }
}

/// Parameters of a workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Workload {
    /// Order of the requests.
    pub order: Order,
    /// Bytes of a request: whole blocks, at most 32 MiB; random requests begin at multiples of it. The last write to
    /// a zone that is written in order may have fewer.
    pub request_bytes: u64,
    /// Limits requests to the first so many bytes of the drive.
    pub size_bytes: Option<u64>,
    /// Seed of random positions.
    pub seed: u64,
}

/// Why a drive cannot have the requests of a workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoRequests {
    /// The size is not possible for a request.
    #[error("{bytes} bytes are no size of requests to a model")]
    RequestBytes {
        /// The size asked for.
        bytes: u64,
    },
    /// The workload is larger than the drive.
    #[error("the drive has {bytes} bytes")]
    Beyond {
        /// Of the drive.
        bytes: u64,
    },
    /// There is no position for a request.
    #[error("no request of {bytes} bytes has a place")]
    NoPlace {
        /// Of a request.
        bytes: u64,
    },
    /// Zones have to be written in order, and the workload writes at random positions.
    #[error("has zones that are written in order")]
    OnlyInOrder,
    /// No zone has data that could be read.
    #[error("has nothing in its zones that could be read")]
    NothingWritten,
}

/// A run of blocks that requests may go to.
struct Region {
    first: u64,
    blocks: u64,
    /// Number of requests in the regions before this one.
    before: u64,
}

/// Iterator over the requests of a workload. Sequential ones end with the drive, random ones never.
pub struct Requests {
    order: Order,
    /// Blocks of a request.
    blocks: u64,
    /// Regions for requests: a drive with zones may have gaps between them.
    extents: Vec<Region>,
    /// Number of requests in the regions.
    slots: u64,
    /// Number of requests returned so far.
    made: u64,
    random: Random,
}

impl Requests {
    /// The requests of a workload on a drive in its state at `now`.
    ///
    /// # Errors
    /// [`NoRequests`].
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
        // A zone that stays open takes the place of another: the last write to it is as short as it has to be.
        let fills = workload.order == Order::Write && model.zones().is_some_and(is_strict);
        let mut slots = 0;
        let mut extents = Vec::new();
        for (first, length) in places(workload.order, model)? {
            let room = length.min(behind.saturating_sub(first));
            let fit = if fills && room == length {
                room.div_ceil(blocks)
            } else {
                room / blocks
            };
            if fit > 0 {
                extents.push(Region {
                    first,
                    blocks: room,
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

    /// First block of the `slot`-th request in order, and number of its blocks.
    fn place(&self, slot: u64) -> (Lba, u32) {
        let behind = self.extents.partition_point(|extent| extent.before <= slot);
        let extent = &self.extents[behind - 1];
        let at = (slot - extent.before) * self.blocks;
        let blocks = self.blocks.min(extent.blocks - at);
        (Lba(extent.first + at), blocks as u32)
    }
}

/// First block and length of every region that such requests may go to. Where zones have to be written in order,
/// blocks that were never written are not read, as in fio: the drive answers such reads without touching the medium.
fn places(order: Order, model: &dyn Model) -> Result<Vec<(u64, u64)>, NoRequests> {
    let Some(zones) = model.zones() else {
        return Ok(vec![(0, model.blocks())]);
    };
    let geometry = zones.geometry();
    let all = zones.report(ZoneId(0), geometry.zone_count);
    let strict = is_strict(zones);
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

fn is_strict(zones: &ZoneTable) -> bool {
    zones.geometry().sequential_kind == ZoneKind::SequentialWriteRequired
}

/// Checks that zones that are written in order allow the order of the workload.
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
        let (first, blocks) = self.place(slot);
        Some(match self.order {
            Order::Read | Order::RandomRead => Request::read(first, blocks),
            Order::Write | Order::RandomWrite => Request::write(first, blocks),
        })
    }
}
