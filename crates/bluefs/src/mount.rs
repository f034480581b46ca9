//! Formatting a drive, and finding everything again.
//!
//! Mount: superblock → journal → is the data of every extent below its zone's write pointer? If
//! not, the frame that named it was never acknowledged: replay again, stopping in front of it →
//! scan the logs' records → claim zones → (unless read-only) begin a new journal, so that what
//! lies behind a torn frame is never taken for a newer one.

use crate::flusher::Flusher;
use crate::format::crc32c;
use crate::format::journal::{Kind, Operation};
use crate::format::log_record::{self, HEADER};
use crate::format::superblock::{Role, Superblock};
use crate::journal::{Journal, too_short};
use crate::namespace::Namespace;
use crate::node::{Node, Piece, Segment};
use crate::prepared::Prepared;
use crate::ring::{RING, Ring};
use crate::shared::{Shared, State, Use};
use crate::slot::{Class, Held, Slot};
use crate::statistics::Counters;
use crate::{BlueFs, Error, FormatOptions, MountOptions, Result};
use device::ZonedDevice;
use parking_lot::{Condvar, Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use zone::{Geometry, ZoneAddress, ZoneCondition, ZoneDescriptor, ZoneId, ZoneKind};
use zone_alloc::{Owner, ZonePool};

/// Ring, journal and its successor, a log, a file, and something to spare.
const MIN_ZONES: u32 = 8;

pub(crate) fn format(device: &dyn ZonedDevice, options: &FormatOptions) -> Result<()> {
    let g = device.geometry();
    if g.zone_count < MIN_ZONES {
        return Err(Error::DriveTooSmall {
            found: g.zone_count,
            needed: MIN_ZONES,
        });
    }
    let earlier = match Ring::find(device) {
        Ok(_) | Err(Error::UnsupportedVersion { .. }) if !options.force => {
            return Err(Error::AlreadyFormatted);
        }
        Err(error @ Error::Drive(_)) => return Err(error),
        found => found.ok().map(|(_, superblock)| superblock.journal_epoch),
    };
    for zone in device.report(ZoneId(0), g.zone_count)? {
        let writable = zone.write_pointer_valid() && zone.kind != ZoneKind::Conventional;
        if writable && zone.condition != ZoneCondition::Empty {
            device.reset(zone.id)?;
        }
    }
    // Conventional zones keep their bytes over a reset: what could be taken for a superblock goes.
    for zone in RING
        .into_iter()
        .filter(|z| g.kind(*z) == ZoneKind::Conventional)
    {
        let bytes = (1024 * u64::from(g.block_size)).min(g.capacity(zone));
        device.write(g.start(zone), &vec![0; bytes as usize])?;
    }
    // Epochs of an earlier file system must not come again in a conventional zone.
    let seed = options.uuid.first_chunk::<6>().copied().unwrap_or_default();
    let [a, b, c, d, e, f] = seed;
    let seed = u64::from_le_bytes([0, 0, a, b, c, d, e, f]) & (u64::MAX >> 1);
    let journal_epoch = match earlier {
        // The same UUID again. One epoch more than the last may have been begun.
        Some(epoch) if epoch >> 16 == seed >> 16 => epoch + 2,
        _ => seed,
    };
    let (journal_zone, spare_zone) = (ZoneId(2), ZoneId(3));
    let mut journal = Journal::new(journal_epoch, journal_zone);
    let first = Operation::NextInode { inode: 1 };
    journal.append(device, &[first], &mut || {
        Err(Error::NoSpace { free_zones: 0 })
    })?;
    device.flush()?;
    let superblock = Superblock {
        uuid: options.uuid,
        role: options.role,
        generation: 1,
        block_size: g.block_size,
        zone_size: g.zone_size,
        zone_capacity: g.zone_capacity,
        zone_count: g.zone_count,
        journal_epoch,
        journal_zone,
        journal_frames: journal.next_frame,
        spare_zone,
    };
    Ring::empty().append(device, &superblock)?;
    device.flush()?;
    Ok(())
}

pub(crate) fn check_geometry(g: &Geometry, s: &Superblock) -> Result<()> {
    let pairs = [
        (
            "block size",
            u64::from(s.block_size),
            u64::from(g.block_size),
        ),
        ("zone size", s.zone_size, g.zone_size),
        ("zone capacity", s.zone_capacity, g.zone_capacity),
        (
            "number of zones",
            u64::from(s.zone_count),
            u64::from(g.zone_count),
        ),
    ];
    for (what, expected, found) in pairs {
        if expected != found {
            return Err(Error::GeometryChanged {
                what,
                expected,
                found,
            });
        }
    }
    Ok(())
}

pub(crate) fn mount(
    device: Arc<dyn ZonedDevice>,
    pool: Arc<ZonePool>,
    options: MountOptions,
) -> Result<BlueFs> {
    let g = device.geometry().clone();
    let (ring, superblock) = Ring::find(&*device)?;
    check_geometry(&g, &superblock)?;
    let report = device.report(ZoneId(0), g.zone_count)?;
    let (names, journal) = replay(&*device, &superblock, &report)?;
    let mut damage = Vec::new();
    for node in names.nodes.values().filter(|n| n.kind == Kind::Log) {
        damage.extend(scan_log(&*device, node, &report)?);
    }
    let mut zones: BTreeMap<ZoneId, Use> = BTreeMap::new();
    for node in names.nodes.values() {
        for zone in Node::zones(&node.body.read(), node.kind) {
            zones.entry(zone).or_default().extents += 1;
        }
    }
    let fixed = RING.iter().chain([&superblock.spare_zone]);
    let owned = names.owned.iter().chain(zones.keys());
    for zone in fixed.chain(&journal.zones).chain(owned) {
        pool.claim(*zone, Owner::BlueFs)
            .map_err(|_| Error::Corrupt {
                at: ZoneAddress::new(*zone, 0),
                what: "a zone that is not ours or not there",
                expected: u64::from(g.zone_count),
                found: u64::from(zone.0),
            })?;
    }
    let mounted = Arc::new(AtomicBool::new(true));
    let state = State {
        mounted: mounted.clone(),
        names,
        ring,
        superblock,
        journal,
        pending: Vec::new(),
        pending_without_witness: false,
        zones,
        slots: Vec::new(),
        prepared: Vec::new(),
        freed: Vec::new(),
        awaiting: Vec::new(),
        resetting: 0,
        giving: Vec::new(),
        budget_cut: 0,
        snapshot_bytes: 0,
        locks: BTreeSet::new(),
        damage,
    };
    let shared = Shared {
        device,
        pool,
        clock: options.clock,
        read_only: options.read_only,
        state: Mutex::new(state),
        mounted,
        unmounted: AtomicBool::new(false),
        salt: AtomicU32::new(0),
        flusher: Flusher::default(),
        recycled: Condvar::new(),
        gate: RwLock::new(()),
        counters: Counters::default(),
    };
    if !options.read_only {
        shared.begin(&report)?;
    }
    Ok(BlueFs {
        shared: Arc::new(shared),
    })
}

impl Shared {
    /// What a writable mount changes on the drive.
    fn begin(&self, report: &[ZoneDescriptor]) -> Result<()> {
        let mut state = self.state.lock();
        let state = &mut *state;
        state.ring.finish_other(&*self.device)?;
        // Taken, and nothing in them counts. Resetting them now changes nothing for another replay
        // of the old journal, and the flush in the compaction makes it durable.
        let is_empty =
            |zone: &ZoneId| !state.zones.contains_key(zone) && !state.journal.zones.contains(zone);
        let empty: Vec<ZoneId> = state
            .names
            .owned
            .iter()
            .filter(|z| is_empty(z))
            .copied()
            .collect();
        let outcome = self.reset(&empty)?;
        self.recycle(state, outcome);
        for Prepared { ready, .. } in &mut state.prepared {
            *ready = None;
        }
        self.top_up(state);
        self.compact(state)?;
        self.salt.store(
            crc32c(&state.journal.epoch.to_le_bytes()),
            Ordering::Release,
        );
        if state.superblock.role == Role::Alone {
            let outcome = self.reset(&self.pool.unclaimed())?;
            self.recycle(state, outcome);
        }
        // Go on in zones that are partly written; what is too many is finished, so that it holds
        // no active resource.
        let limited = self.pool.active_quota(Owner::BlueFs).is_some();
        let budget = self.slot_budget(state) / 2;
        let mut partly: Vec<_> = state
            .zones
            .keys()
            .filter_map(|zone| report.get(zone.index()))
            .filter(|z| z.write_pointer_valid() && z.condition.is_active())
            .copied()
            .collect();
        partly.sort_unstable_by_key(|z| (z.write_pointer, z.id));
        for (index, zone) in partly.into_iter().enumerate() {
            if index < budget {
                let (capacity, used) = (zone.capacity, Mutex::new(zone.write_pointer));
                let slot = Slot {
                    zone: zone.id,
                    class: Class::Medium,
                    capacity,
                    used,
                };
                state.slots.push(Held {
                    slot: Arc::new(slot),
                    writers: 0,
                });
            } else if limited {
                self.device.finish(zone.id)?;
            }
        }
        Ok(())
    }
}

/// Replays the journal as far as the data it names is there.
fn replay(
    device: &dyn ZonedDevice,
    superblock: &Superblock,
    report: &[ZoneDescriptor],
) -> Result<(Namespace, Journal)> {
    let mut stop = u64::MAX;
    loop {
        let mut names = Namespace::new();
        // Which frame named the data at a place last.
        let mut named: HashMap<ZoneAddress, u64> = HashMap::new();
        let mut each = |frame: u64, operations: Vec<Operation>| {
            if frame == stop {
                return false;
            }
            for operation in &operations {
                if let Operation::Extend { extents, .. } | Operation::Move { extents, .. } =
                    operation
                {
                    named.extend(extents.iter().map(|e| (e.at, frame)));
                }
                names.apply(operation);
            }
            true
        };
        let (epoch, zone) = (superblock.journal_epoch, superblock.journal_zone);
        let journal = Journal::replay(device, epoch, zone, &mut each)?;
        if journal.next_frame < superblock.journal_frames {
            return Err(too_short(&journal, superblock.journal_frames));
        }
        let lost = names
            .nodes
            .values()
            .filter(|n| n.kind == Kind::Plain)
            .flat_map(|node| {
                let body = node.body.read();
                let missing = body.pieces.iter().filter(|p| !is_there(device, report, p));
                missing
                    .filter_map(|p| named.get(&p.at).copied())
                    .collect::<Vec<_>>()
            });
        match lost.min() {
            // Frames that the superblock vouches for were durable with their data: that is
            // damage, which a check reports and a read runs into; no reason to forget more.
            Some(frame) if frame >= superblock.journal_frames => stop = frame,
            _ => return Ok((names, journal)),
        }
    }
}

fn is_there(device: &dyn ZonedDevice, report: &[ZoneDescriptor], piece: &Piece) -> bool {
    let end = piece
        .at
        .offset
        .saturating_add(device.geometry().round_up(piece.length));
    report.get(piece.at.zone.index()).is_some_and(|zone| {
        let limit = if zone.write_pointer_valid() {
            zone.write_pointer
        } else {
            zone.capacity
        };
        end <= limit
    })
}

/// Finds a log's records. Afterwards all its segments have an end.
/// Answers what looks like damage rather than like a torn tail, in words.
fn scan_log(
    device: &dyn ZonedDevice,
    node: &Node,
    report: &[ZoneDescriptor],
) -> Result<Vec<String>> {
    let mut damage = Vec::new();
    let mut body = node.body.write();
    let mut segments = std::mem::take(&mut body.segments);
    let last = segments.len().saturating_sub(1);
    for (index, segment) in segments.iter_mut().enumerate() {
        let cut = body.written() > segment.file_offset;
        if cut {
            body.cut(segment.file_offset);
        }
        if body.written() == segment.file_offset {
            let end = scan_segment(device, node.inode, segment, report, &mut body.pieces)?;
            // Behind a segment that is not the last lie records of the next.
            let looks = index == last && segment.limit == u64::MAX;
            if looks
                && let Some(at) = damaged(device, node.inode, segment, report, end, body.written())?
            {
                let what = format!("log with inode {} is cut short at {at}", node.inode);
                tracing::error!("{what}: good records lie behind it");
                damage.push(what);
            }
            segment.end = end;
        } else {
            // Something in front of it is gone, so that it is not reachable any more.
            segment.end = segment.at.offset;
        }
        if segment.limit < body.written() {
            body.cut(segment.limit);
        }
    }
    body.segments = segments;
    node.dirty.store(true, Ordering::Release);
    Ok(damage)
}

/// Whether what ends a run of records at `end` is damage: a sequential zone loses only its tail in
/// a power cut, so a good record of the log further on, or an end that was known to be later,
/// means that something in between was changed (after a cut, new records begin at or below `size`). (Data that a host lost out of its cache looks
/// alike; either way somebody should know.)
fn damaged(
    device: &dyn ZonedDevice,
    inode: u64,
    segment: &Segment,
    report: &[ZoneDescriptor],
    end: u64,
    size: u64,
) -> Result<Option<ZoneAddress>> {
    const LOOK_AHEAD: u64 = 16 << 20;
    let g = device.geometry();
    let block = u64::from(g.block_size);
    let at = ZoneAddress::new(segment.at.zone, end);
    let Some(zone) = report
        .get(at.zone.index())
        .filter(|z| z.write_pointer_valid())
    else {
        return Ok(None);
    };
    if segment.end != u64::MAX {
        return Ok((end < segment.end).then_some(at));
    }
    let limit = zone.write_pointer.min(end + LOOK_AHEAD);
    let mut offset = end + block;
    while offset + block <= limit {
        let place = g.absolute(ZoneAddress::new(at.zone, offset));
        let mut record = vec![0; block as usize];
        device.read(place, &mut record)?;
        if let Some(header) = log_record::decode_header(&record)
            .filter(|h| h.inode == inode && h.salt == segment.salt && h.file_offset > size)
        {
            let length = g.round_up(header.record_length() as u64);
            if offset + length <= limit {
                record.resize(length as usize, 0);
                device.read(place, &mut record)?;
                if header.fits(&record) {
                    return Ok(Some(at));
                }
            }
        }
        offset += block;
    }
    Ok(None)
}

fn scan_segment(
    device: &dyn ZonedDevice,
    inode: u64,
    segment: &Segment,
    report: &[ZoneDescriptor],
    pieces: &mut Vec<Piece>,
) -> Result<u64> {
    const WINDOW: u64 = 1 << 20;
    let at = segment.at;
    let g = device.geometry();
    let block = u64::from(g.block_size);
    let Some(zone) = report.get(at.zone.index()) else {
        return Ok(at.offset);
    };
    let written = if zone.write_pointer_valid() {
        zone.write_pointer
    } else {
        zone.capacity
    };
    let limit = segment.end.min(written);
    let mut next = pieces.last().map_or(0, |p| p.file_offset + p.length);
    let mut offset = at.offset;
    let mut last_end = at.offset;
    let mut window: Vec<u8> = Vec::new();
    let mut window_at = 0;
    while offset + block <= limit {
        let have = |at: u64, length: u64, w: &Vec<u8>, w_at: u64| {
            at >= w_at && at + length <= w_at + w.len() as u64
        };
        // A whole record is at most 1 MiB, so two windows always hold the one at hand.
        let mut record_length = block;
        for _ in 0..2 {
            if !have(offset, record_length, &window, window_at) {
                let length = WINDOW.max(record_length).min(limit - offset);
                window.resize(length as usize, 0);
                device.read(g.absolute(ZoneAddress::new(at.zone, offset)), &mut window)?;
                window_at = offset;
            }
            if !have(offset, record_length, &window, window_at) {
                return Ok(last_end);
            }
            let here = &window[(offset - window_at) as usize..];
            let Some(header) = log_record::decode_header(here) else {
                return Ok(last_end);
            };
            record_length = g.round_up(header.record_length() as u64);
            if offset + record_length > limit {
                return Ok(last_end);
            }
        }
        let record = &window[(offset - window_at) as usize..][..record_length as usize];
        let Some(header) = log_record::decode_header(record).filter(|h| h.fits(record)) else {
            return Ok(last_end);
        };
        if header.salt != segment.salt {
            // Not of the same life of the zone: nothing behind it is ours either.
            return Ok(last_end);
        }
        // Records of other logs that share the zone lie in between.
        if header.inode == inode {
            if header.file_offset != next {
                return Ok(last_end);
            }
            let payload = ZoneAddress::new(at.zone, offset + HEADER as u64);
            let length = u64::from(header.length);
            pieces.push(Piece {
                file_offset: next,
                at: payload,
                length,
                checksum: 0,
            });
            next += length;
            last_end = offset + record_length;
        }
        offset += record_length;
    }
    Ok(last_end)
}
