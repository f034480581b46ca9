//! Formats a drive.

use crate::format::ONE_COPY_VERSION;
use crate::format::journal::HEADER;
use crate::format::operation::JournalOperation;
use crate::format::superblock::Superblock;
use crate::journal::Journal;
use crate::look;
use crate::mirror::{Mirror, Mirrored};
use crate::namespace::MAX_PATH;
use crate::options::FormatOptions;
use crate::ring::{Rings, ring_zones};
use crate::supply::take_zone;
use crate::tenants::min_zones;
use crate::{Error, FORMAT_VERSION, Result};
use appender::is_of_zone;
use device::ZonedDevice;
use zone::{ZoneCondition, ZoneId, ZoneKind};
use zone_alloc::{Owner, Purpose, ZonePool};

/// Fewest blocks of a zone: a journal frame is smaller than half a zone less a block.
pub(crate) const MIN_ZONE_BLOCKS: u64 = 3;
/// Bytes of the longest operation in the journal: a rename between the longest paths.
const LONGEST_OPERATION: u64 = 1 + 2 * (2 + MAX_PATH as u64);
/// Fewest active zones: both superblock rings, the journal, and zones for files, by the number of copies.
const fn min_active_zones(copies: u32) -> u64 {
    if copies == 1 { 4 } else { 8 }
}

pub(crate) fn mkfs(device: &dyn ZonedDevice, options: &FormatOptions) -> Result<()> {
    let g = device.geometry();
    let needed = min_zones(options.copies);
    if g.zone_count < needed {
        return Err(Error::DriveTooSmall {
            found: g.zone_count,
            needed,
        });
    }
    let longest_frame = HEADER as u64 + LONGEST_OPERATION;
    let shape = [
        (
            "zone capacity in blocks",
            g.least_capacity() / u64::from(g.block_size),
            // A frame with the longest operation, and a link to the next zone.
            MIN_ZONE_BLOCKS.max(longest_frame.div_ceil(g.block_size.into()) + 1),
        ),
        (
            "limit of active zones",
            match g.max_active_zones {
                0 => u64::MAX,
                limit => u64::from(limit),
            },
            min_active_zones(options.copies),
        ),
    ];
    for (what, found, needed) in shape {
        if found < needed {
            return Err(Error::Unsuitable {
                what,
                found,
                needed,
            });
        }
    }
    let contents = look::look(device)?;
    if !options.force && !contents.is_empty() {
        return Err(Error::NotEmpty {
            contents: Box::new(contents),
        });
    }
    let earlier = contents.superblock.map(|s| s.journal_epoch);
    // A read-only zone keeps its superblocks, and the highest generation counts.
    let generation = contents.superblock.map_or(1, |s| s.next().generation);
    let mut not_reset = None;
    for zone in device.report(ZoneId(0), g.zone_count)? {
        let writable = zone.write_pointer_valid() && zone.kind != ZoneKind::Conventional;
        if writable && zone.condition != ZoneCondition::Empty {
            match device.reset(zone.id) {
                // The pool takes it for another's; a mount resets it again.
                Err(error) if is_of_zone(&error) => {
                    tracing::warn!(%error, zone = %zone.id, "a zone cannot be reset, and is not used");
                    not_reset.get_or_insert(error);
                }
                result => result?,
            }
        }
    }
    // Conventional zones keep their bytes over a reset, so anything that could be taken for a superblock is
    // overwritten.
    let rings = ring_zones(g).concat();
    for zone in rings
        .iter()
        .copied()
        .filter(|z| g.kind(*z) == ZoneKind::Conventional)
    {
        let bytes = (1024 * u64::from(g.block_size)).min(g.capacity(zone));
        device.write(g.start(zone), &vec![0; bytes as usize])?;
    }
    // Epochs of an earlier file system must not be repeated while its frames may be in a conventional zone.
    let seed = options.uuid.first_chunk::<6>().copied().unwrap_or_default();
    let [a, b, c, d, e, f] = seed;
    let seed = u64::from_le_bytes([0, 0, a, b, c, d, e, f]) & (u64::MAX >> 1);
    let journal_epoch = match earlier {
        // The same UUID again; an epoch after the last one known may have been begun.
        Some(epoch) if epoch >> 16 == seed >> 16 => epoch + 2,
        _ => seed,
    };
    let pool = ZonePool::new(g.clone(), &device.report(ZoneId(0), g.zone_count)?);
    for zone in rings {
        _ = pool.claim(zone, Owner::BlueFs);
    }
    let device = &Mirrored::new(device);
    let take = || {
        let zone = take_zone(&pool, device, options.copies, Purpose::Journal);
        zone.ok_or_else(|| match &not_reset {
            Some(error) => error.clone().into(),
            None => Error::NoSpace { free_zones: 0 },
        })
    };
    let (journal_zone, spare_zone) = (take()?, take()?);
    let mut journal = Journal::new(journal_epoch, journal_zone);
    let first = JournalOperation::NextInode { inode: 1 };
    journal.append(device, &mut vec![first.into()], &mut || {
        Err(Error::NoSpace { free_zones: 0 })
    })?;
    device.flush()?;
    let superblock = Superblock {
        version: match options.copies {
            1 => ONE_COPY_VERSION,
            _ => FORMAT_VERSION,
        },
        uuid: options.uuid,
        role: options.role,
        generation,
        block_size: g.block_size,
        zone_size: g.zone_size,
        zone_capacity: g.zone_capacity,
        zone_count: g.drive_zones(),
        conventional_parts: g.conventional_parts,
        journal_epoch,
        journal_zone,
        journal_frames: journal.next_frame,
        spare_zone,
        journal_twin: device.twin(journal_zone),
        spare_twin: device.twin(spare_zone),
    };
    let flush = || Ok(device.flush()?);
    Rings::empty(g).append(*device.inner(), &superblock, &flush)?;
    flush()
}
