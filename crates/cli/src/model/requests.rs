//! The requests of a workload: where they go, in order or at random.

use crate::args::{ModelRun, Order};
use crate::errors::{CommandError, CommandResult, Exit};
use crate::size::human;
use drive_model::{BLOCK_BYTES, Lba, Model, Request, Time};
use skylight::Random;
use zone::{ZoneDescriptor, ZoneId, ZoneKind};

/// Most bytes of a request, as over NBD.
const MOST_BYTES: u64 = 32 << 20;

/// Blocks in one piece.
struct Extent {
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
    extents: Vec<Extent>,
    /// How many fit.
    slots: u64,
    /// How many were made.
    made: u64,
    random: Random,
}

impl Requests {
    /// Those that are asked for, of a drive as it is `now`: at another time others.
    ///
    /// # Errors
    /// The drive has no such requests, or no place for them.
    pub fn new(arguments: &ModelRun, model: &dyn Model, now: Time) -> CommandResult<Self> {
        let bytes = arguments.bs.0;
        if bytes == 0 || !bytes.is_multiple_of(BLOCK_BYTES) || bytes > MOST_BYTES {
            let wrong = format_args!("--bs {bytes}: not a size of requests to a model");
            return Err(CommandError::new(Exit::Usage, wrong)
                .hint("a model has blocks of 4 KiB: write a multiple of that, 32MiB at most"));
        }
        let blocks = bytes / BLOCK_BYTES;
        let behind = (arguments.size).map_or(model.blocks(), |size| size.0 / BLOCK_BYTES);
        if behind > model.blocks() {
            let all = human(model.blocks() * BLOCK_BYTES);
            let wrong = format_args!("--size: {} has {all}", arguments.drive.profile);
            return Err(
                CommandError::new(Exit::Usage, wrong).hint("write less, or nothing for all")
            );
        }
        let mut slots = 0;
        let mut extents = Vec::new();
        for (first, length) in places(arguments, model)? {
            let fit = length.min(behind.saturating_sub(first)) / blocks;
            if fit > 0 {
                extents.push(Extent {
                    first,
                    before: slots,
                });
            }
            slots += fit;
        }
        if slots == 0 {
            let wrong = format_args!("no request of {} has a place", human(bytes));
            return Err(CommandError::new(Exit::Usage, wrong).hint(
                "take a smaller --bs or a larger --size; zones are written behind what is in them",
            ));
        }
        Ok(Self {
            order: arguments.rw,
            blocks,
            extents,
            slots,
            made: 0,
            random: Random::new(arguments.drive.seed.wrapping_add(now.nanos())),
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
fn places(arguments: &ModelRun, model: &dyn Model) -> CommandResult<Vec<(u64, u64)>> {
    let Some(zones) = model.zones() else {
        return Ok(vec![(0, model.blocks())]);
    };
    let geometry = zones.geometry();
    let all = zones.report(ZoneId(0), geometry.zone_count);
    let strict = geometry.sequential_kind == ZoneKind::SequentialWriteRequired;
    let name = &arguments.drive.profile;
    if strict {
        refuse(arguments.rw, &all).map_err(|(why, how)| {
            CommandError::new(Exit::Refused, format_args!("{name} {why}")).hint(how)
        })?;
    }
    let place = |zone: &ZoneDescriptor| {
        let free = strict && zone.write_pointer_valid();
        let (from, to) = match arguments.rw {
            Order::Read | Order::Randread if free => (0, zone.write_pointer),
            Order::Write if free => (zone.write_pointer, zone.capacity),
            _ => (0, zone.capacity),
        };
        let first = (geometry.start(zone.id).0 + from) / BLOCK_BYTES;
        (first, (to - from) / BLOCK_BYTES)
    };
    Ok(all.iter().map(place).collect())
}

/// What cannot be asked of zones that are written in order, and what can be done.
fn refuse(order: Order, zones: &[ZoneDescriptor]) -> Result<(), (&'static str, &'static str)> {
    let written = |zone: &ZoneDescriptor| zone.write_pointer_valid() && zone.write_pointer > 0;
    match order {
        Order::Randwrite => Err((
            "has zones that are written in order",
            "--rw write fills them one after the other",
        )),
        Order::Read | Order::Randread if !zones.iter().any(written) => Err((
            "has nothing in its zones that could be read",
            "`--rw write --bs 1MiB --runtime 7d --state FILE` fills it, in a minute of yours; read it with the \
             same --state then",
        )),
        _ => Ok(()),
    }
}

impl Iterator for Requests {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let slot = match self.order {
            Order::Read | Order::Write if self.made == self.slots => return None,
            Order::Read | Order::Write => self.made,
            Order::Randread | Order::Randwrite => self.random.below(self.slots),
        };
        self.made += 1;
        let (first, blocks) = (Lba(self.place(slot)), self.blocks as u32);
        Some(match self.order {
            Order::Read | Order::Randread => Request::read(first, blocks),
            Order::Write | Order::Randwrite => Request::write(first, blocks),
        })
    }
}
