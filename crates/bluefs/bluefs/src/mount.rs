//! Formatting a drive, and finding everything again.
//!
//! Mount: superblock → journal → is the data of every extent below its zone's write pointer? If
//! not, the frame that named it was never acknowledged: replay again, stopping in front of it →
//! scan the logs' records → is anything missing of which somebody says that it was durable? Then
//! only a mount that accepts damage goes on → claim zones → (unless read-only) begin a new journal, so that
//! what lies behind a torn frame is never taken for a newer one.

use crate::cache::BlockCache;
use crate::cleaner::Cleaner;
use crate::failing::{DamagedFile, Failing};
use crate::flusher::Flusher;
use crate::format::journal::{JournalOperation, Kind};
use crate::format::superblock::{Role, Superblock};
use crate::journal::Journal;
use crate::look;
use crate::marks::Marks;
use crate::namespace::Namespace;
use crate::node::{Node, is_there};
use crate::options::{FormatOptions, MountOptions};
use crate::ring::{Rings, ring_zones};
use crate::salvage::{self, salvage};
use crate::scan::{self, scan_log};
use crate::shared::Shared;
use crate::slot::Class;
use crate::state::State;
use crate::statistics::Counters;
use crate::tenants::MIN_ZONES;
use crate::unsynced::{self, Unsynced};
use crate::wake::Wake;
use crate::zone_failures::damaged_files;
use crate::zone_table::ZoneTable;
use crate::{Error, FORMAT_VERSION, Result};
use device::ZonedDevice;
use runtime::HashMap;
use runtime::sync::{Condvar, Mutex};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use zone::{Geometry, ZoneAddress, ZoneCondition, ZoneDescriptor, ZoneId, ZoneKind};
use zone_alloc::{Owner, ZonePool};

pub(crate) fn format(device: &dyn ZonedDevice, options: &FormatOptions) -> Result<()> {
    let g = device.geometry();
    if g.zone_count < MIN_ZONES {
        return Err(Error::DriveTooSmall {
            found: g.zone_count,
            needed: MIN_ZONES,
        });
    }
    let contents = look::look(device)?;
    if !options.force && !contents.is_empty() {
        return Err(Error::NotEmpty {
            contents: Box::new(contents),
        });
    }
    let earlier = contents.superblock.map(|s| s.journal_epoch);
    for zone in device.report(ZoneId(0), g.zone_count)? {
        let writable = zone.write_pointer_valid() && zone.kind != ZoneKind::Conventional;
        if writable && zone.condition != ZoneCondition::Empty {
            device.reset(zone.id)?;
        }
    }
    // Conventional zones keep their bytes over a reset: what could be taken for a superblock goes.
    let rings = ring_zones(g).concat();
    for zone in rings
        .iter()
        .copied()
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
    let mut usable = device
        .report(ZoneId(0), g.zone_count)?
        .into_iter()
        .filter(|z| !rings.contains(&z.id))
        .filter(|z| {
            matches!(
                z.condition,
                ZoneCondition::NotWritePointer | ZoneCondition::Empty
            )
        })
        .map(|z| z.id);
    let (Some(journal_zone), Some(spare_zone)) = (usable.next(), usable.next()) else {
        return Err(Error::NoSpace { free_zones: 0 });
    };
    let mut journal = Journal::new(journal_epoch, journal_zone);
    let first = JournalOperation::NextInode { inode: 1 };
    journal.append(device, &mut vec![first.into()], &mut || {
        Err(Error::NoSpace { free_zones: 0 })
    })?;
    device.flush()?;
    let superblock = Superblock {
        version: FORMAT_VERSION,
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
    let flush = || Ok(device.flush()?);
    Rings::empty(g).append(device, &superblock, &flush)?;
    flush()
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

/// What a mounted file system is made of.
pub(crate) struct Mounted {
    pub shared: Arc<Shared>,
    pub cleaner: Option<Arc<Cleaner>>,
    /// Logs have more than the drive has of them, from beside it.
    pub has_recovered: bool,
}

pub(crate) fn mount(
    device: Arc<dyn ZonedDevice>,
    pool: Arc<ZonePool>,
    options: MountOptions,
) -> Result<Mounted> {
    let g = device.geometry().clone();
    let (rings, mut superblock) = look::find(&*device)?;
    if options.role.is_some_and(|role| role != superblock.role) {
        return Err(Error::OtherRole {
            contents: Box::new(look::look(&*device)?),
        });
    }
    let newer = damaged_superblock(&*device, &superblock);
    if options.accept_damage {
        superblock = without_damaged_superblocks(&*device, superblock);
    }
    check_geometry(&g, &superblock)?;
    let report = device.report(ZoneId(0), g.zone_count)?;
    let mut marks = Marks::new(superblock.journal_epoch, superblock.journal_frames);
    let (mut names, mut journal, lacking) = replay(&*device, &superblock, &report, &mut marks)?;
    let mut damage = find_damage(&*device, &report, &names, &journal, &[], &mut marks)?;
    let mut salvaged = None;
    if journal.next_frame < marks.frames {
        let first = superblock.journal_zone;
        let found = salvage(&*device, &report, first, &journal, marks.frames)?;
        names = found.names;
        // With the logs that are known now, and where only we write also in zones that are nobody's: what
        // is damaged may have taken them.
        let alone = superblock.role == Role::Alone;
        let fixed = ring_zones(&g).concat();
        let others: Vec<ZoneId> = match alone && options.accept_damage {
            true => g.zones().filter(|zone| !fixed.contains(zone)).collect(),
            false => Vec::new(),
        };
        damage = find_damage(&*device, &report, &names, &journal, &others, &mut marks)?;
        let mut losses = found.losses;
        losses.extend(names.shorter_than_they_were(&marks.found, &found.gone));
        losses.extend(names.forget_lost_runs());
        let mut paths: Vec<String> = losses.iter().map(|loss| loss.path.clone()).collect();
        paths.dedup();
        let at = journal.end();
        let zone = report.get(at.zone.index());
        damage.insert(
            0,
            Error::JournalDamaged {
                at,
                offline: zone.is_some_and(|zone| zone.condition == ZoneCondition::Offline),
                missing: found.missing,
                paths,
            },
        );
        losses.push(salvage::not_all_is_known(&journal));
        salvaged = Some(losses);
        if options.accept_damage && !options.read_only {
            names.forget_what_is_stale(&*device, alone)?;
        }
        // They are given up with the journal, not before its successor is durable. One with a file in it is
        // none of the journal's, whatever was copied to its front.
        let of_files = names.zones_of_files(&g);
        let known = journal.zones.clone();
        let zones = found.zones.into_iter();
        let zones = zones.filter(|zone| !known.contains(zone) && !of_files.contains(zone));
        journal.zones.extend(zones);
    }
    damage.extend(newer);
    if let Some(first) = damage.first().filter(|_| !options.accept_damage) {
        return Err(first.clone());
    }
    for error in &damage {
        // Whoever accepts it asks for it: `BlueFs::damage`.
        tracing::info!(%error, "going on without changes that were acknowledged");
    }
    let has_recovered = recover_unsynced(&*device, &superblock, &names, options.read_only);
    let zones = claim(&g, &pool, &names, &superblock, &journal)?;
    if superblock.role == Role::Alone {
        pool.set_bluefs_alone();
    }
    let mounted = Arc::new(AtomicBool::new(true));
    let cache = Arc::new(BlockCache::new(options.cache_bytes));
    let state = State {
        mounted: mounted.clone(),
        names,
        rings,
        superblock,
        journal,
        pending: Vec::new(),
        pending_without_witness: false,
        zones,
        nameless: BTreeMap::new(),
        next_batch: 1,
        durable_batch: 0,
        budget_cut: 0,
        snapshot_bytes: 0,
        snapshot_length: Cell::default(),
        locks: BTreeSet::new(),
        cache: cache.clone(),
        runs: 0,
        // For writing it is accepted, and what a writable mount begins with does not know of it.
        damage: if options.read_only {
            damage
        } else {
            Vec::new()
        },
        salvaged,
    };
    let keep_unsynced = options.keep_unsynced && !options.read_only;
    let unsynced = Unsynced::new(
        device.clone(),
        keep_unsynced,
        superblock.uuid,
        superblock.journal_epoch,
    );
    let shared = Shared {
        device,
        pool,
        runtime: options.runtime,
        read_only: options.read_only,
        state: Mutex::new(state),
        journaling: Mutex::new(()),
        batches: runtime::sync::atomic::AtomicU64::new(0),
        mounted,
        unmounted: AtomicBool::new(false),
        witness: Mutex::default(),
        flusher: Flusher::default(),
        recycled: Condvar::new(),
        moving: Mutex::new(()),
        wake: Wake::default(),
        failing: Failing::default(),
        gate: Arc::default(),
        counters: Counters::default(),
        cache,
        cache_writes: options.cache_writes,
        unsynced,
        ahead_left: Arc::new(AtomicU64::new(crate::readahead_window::BUDGET)),
    };
    shared.learn_of_zones(&report);
    if !options.read_only {
        shared.begin(&report, &lacking)?;
    }
    let shared = Arc::new(shared);
    let cleaning = options.cleaning.filter(|_| !options.read_only);
    let cleaner = cleaning.map(|cleaning| Cleaner::start(&shared, cleaning));
    Ok(Mounted {
        cleaner: cleaner.map(Arc::new),
        has_recovered: has_recovered && !shared.read_only,
        shared,
    })
}

/// Claims all zones of the file system from the pool, and finds what is live in each.
fn claim(
    g: &Geometry,
    pool: &ZonePool,
    names: &Namespace,
    superblock: &Superblock,
    journal: &Journal,
) -> Result<ZoneTable> {
    let mut zones = ZoneTable::new(g.clone());
    let claim = |zone: ZoneId| {
        pool.claim(zone, Owner::BlueFs).map_err(|_| Error::Corrupt {
            at: ZoneAddress::new(zone, 0),
            what: "a zone that is not ours or not there",
            expected: u64::from(g.zone_count),
            found: u64::from(zone.0),
        })
    };
    let superblocks = ring_zones(g).concat().into_iter();
    let metadata = superblocks.chain([superblock.spare_zone]);
    for zone in metadata.chain(journal.zones.iter().copied()) {
        claim(zone)?;
        zones.claim_metadata(zone)?;
    }
    names.owned.iter().copied().try_for_each(claim)?;
    for node in names.nodes.values() {
        for (zone, blocks) in node.extents(g, &node.body.read()) {
            claim(zone)?;
            zones.claim_data(zone, blocks).map_err(|_| Error::Corrupt {
                at: ZoneAddress::new(zone, 0),
                what: "a file in a zone of the journal or of superblocks, inode",
                expected: 0,
                found: node.inode,
            })?;
        }
    }
    Ok(zones)
}

/// Puts what an earlier process has left of logs behind what the drive has of them; true if it has left any.
fn recover_unsynced(
    device: &dyn ZonedDevice,
    superblock: &Superblock,
    names: &Namespace,
    read_only: bool,
) -> bool {
    let Some(memory) = device.host_memory() else {
        return false;
    };
    let Some(left) = memory.left_behind() else {
        return false;
    };
    let noted = unsynced::decode(&left, &superblock.uuid, superblock.journal_epoch);
    for node in names.nodes.values().filter(|n| n.kind == Kind::Log) {
        recover(node, &noted);
    }
    // Of another file system, or of another time. It must not pass for ours later.
    if noted.is_empty()
        && !read_only
        && let Err(error) = memory.clear()
    {
        tracing::warn!(%error, "what was kept beside the drive cannot be removed");
    }
    !noted.is_empty()
}

impl Shared {
    /// Remembers which zones with data are read-only or offline, and says what is lost.
    fn learn_of_zones(&self, report: &[ZoneDescriptor]) {
        let state = self.state.lock();
        self.failing
            .learn(report, |zone| state.zones.has_data(zone));
        for DamagedFile { path, zone, .. } in damaged_files(&state, report) {
            tracing::error!(path, %zone, "a file has lost bytes");
        }
        self.wake.call();
    }

    /// What a writable mount changes on the drive.
    fn begin(&self, report: &[ZoneDescriptor], lacking: &BTreeSet<ZoneId>) -> Result<()> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        state.rings.finish_others(&*self.device)?;
        // Taken, and nothing in them counts. Resetting them now changes nothing for another replay
        // of the old journal, and the flush in the compaction makes it durable.
        let owned = state.names.owned.iter().copied();
        let empty: Vec<ZoneId> = owned.filter(|z| state.zones.is_foreign(*z)).collect();
        let outcome = self.reset(&empty)?;
        self.recycle(state, outcome)?;
        self.top_up(state)?;
        let limited = self.pool.active_quota(Owner::BlueFs).is_some();
        let mut partly: Vec<_> = state
            .zones
            .holding()
            .filter_map(|(zone, _)| report.get(zone.index()))
            .filter(|z| z.write_pointer_valid() && z.condition.is_active())
            .copied()
            .collect();
        partly.sort_unstable_by_key(|z| (z.write_pointer, z.id));
        // A power cut may leave more of them than were active: some had been full. The journal and a
        // superblock need their resources now. As long as the old journal counts, the write pointer is a
        // witness where it has shown that something is not there.
        let budget = self.slot_budget(state);
        while limited && partly.len() > budget {
            let fullest = partly.iter().rposition(|z| !lacking.contains(&z.id));
            let Some(index) = fullest else { break };
            self.device.finish(partly.remove(index).id)?;
        }
        drop(guard);
        self.compact_if(&|_| true)?;
        let state = &mut *self.state.lock();
        if state.superblock.role == Role::Alone {
            let outcome = self.reset(&self.pool.unclaimed())?;
            self.recycle(state, outcome)?;
        }
        // Go on in zones that are partly written; what is too many is finished, so that it holds
        // no active resource.
        let budget = self.slot_budget(state) / 2;
        for (index, zone) in partly.into_iter().enumerate() {
            if index < budget {
                let slot =
                    state.new_slot(zone.id, Class::Medium, zone.capacity, zone.write_pointer);
                state.zones.reopen(slot)?;
            } else if limited {
                self.device.finish(zone.id)?;
            }
        }
        Ok(())
    }
}

/// Replays the journal as far as the data it names is there; answers also in which zones some is not.
fn replay(
    device: &dyn ZonedDevice,
    superblock: &Superblock,
    report: &[ZoneDescriptor],
    marks: &mut Marks,
) -> Result<(Namespace, Journal, BTreeSet<ZoneId>)> {
    let mut stop = u64::MAX;
    let mut lacking = BTreeSet::new();
    loop {
        let mut names = Namespace::new();
        // Which frame named the data at a place last.
        let mut named: HashMap<ZoneAddress, u64> = HashMap::default();
        let mut each = |frame: u64, operations: Vec<JournalOperation>| {
            if frame == stop {
                return false;
            }
            for operation in &operations {
                match operation {
                    JournalOperation::Extend { extents, .. }
                    | JournalOperation::Move { extents, .. } => {
                        named.extend(extents.iter().map(|e| (e.at, frame)));
                    }
                    JournalOperation::WrittenEnd { at, run_id } => {
                        marks.hear_written_end(frame, *at, *run_id)
                    }
                    _ => {}
                }
                names.apply(operation);
            }
            true
        };
        let (epoch, zone) = (superblock.journal_epoch, superblock.journal_zone);
        let journal = Journal::replay(device, epoch, zone, &mut each)?;
        marks.hear(epoch, journal.durable);
        let lost = names
            .nodes
            .values()
            .filter(|n| n.kind == Kind::Plain)
            .flat_map(|node| {
                let body = node.body.read();
                let missing = body.pieces.iter().filter(|p| !is_there(device, report, p));
                missing
                    .inspect(|p| _ = lacking.insert(p.at.zone))
                    .filter_map(|p| named.get(&p.at).copied())
                    .collect::<Vec<_>>()
            });
        // Frames that were durable were so with their data: what is missing of that is damage,
        // which a check reports and a read runs into; no reason to forget more.
        match lost.filter(|frame| *frame >= marks.frames).min() {
            Some(frame) => stop = frame,
            None => return Ok((names, journal, lacking)),
        }
    }
}

/// The journal behind that of `superblock`, if its superblock was durable: it begins in the spare
/// zone, and its frames say so.
fn next_epoch(device: &dyn ZonedDevice, superblock: &Superblock) -> Option<Journal> {
    let epoch = superblock.journal_epoch.wrapping_add(1);
    let next = Journal::replay(device, epoch, superblock.spare_zone, &mut |_, _| true);
    next.ok().filter(|next| next.durable > 0)
}

/// The error of a superblock that was durable and is not found.
fn damaged_superblock(device: &dyn ZonedDevice, found: &Superblock) -> Option<Error> {
    next_epoch(device, found).map(|next| Error::Corrupt {
        at: next.end(),
        what: "the superblock that names this journal was durable and is damaged, epoch",
        expected: next.epoch,
        found: found.journal_epoch,
    })
}

/// The newest superblock, made up for those that are damaged.
fn without_damaged_superblocks(device: &dyn ZonedDevice, mut found: Superblock) -> Superblock {
    while let Some(next) = next_epoch(device, &found) {
        found = Superblock {
            journal_epoch: next.epoch,
            journal_zone: found.spare_zone,
            journal_frames: 0,
            spare_zone: found.journal_zone,
            ..found.next()
        };
    }
    found
}

/// Scans the logs. Answers what was durable and is not there any more. Searched is where we have been,
/// and in `others`.
fn find_damage(
    device: &dyn ZonedDevice,
    report: &[ZoneDescriptor],
    names: &Namespace,
    journal: &Journal,
    others: &[ZoneId],
    marks: &mut Marks,
) -> Result<Vec<Error>> {
    let mut stops = Vec::new();
    let mut room = scan::KEEP;
    for node in names.nodes.values().filter(|n| n.kind == Kind::Log) {
        stops.extend(scan_log(device, node, report, marks, &mut room)?);
    }
    marks.search_behind(device, report, &stops);
    let ours = names.owned.iter().chain(others);
    let ours = ours.filter(|zone| !journal.zones.contains(zone));
    let mut live: BTreeMap<ZoneId, u64> = ours.map(|zone| (*zone, 0)).collect();
    for node in names.nodes.values() {
        let body = node.body.read();
        for piece in &body.pieces {
            let end = live.entry(piece.at.zone).or_default();
            *end = (*end).max(piece.at.offset.saturating_add(piece.length));
        }
    }
    marks.search_for_frames(device, report, journal, live.into_iter())?;
    Ok(stops
        .iter()
        .filter_map(|stop| marks.damage(stop, names))
        .collect())
}

/// Puts what was noted of `node` behind what the drive has of it.
fn recover(node: &Node, noted: &[unsynced::Noted]) {
    let mut body = node.body.write();
    let mut pieces: Vec<_> = noted.iter().filter(|n| n.inode == node.inode).collect();
    pieces.sort_unstable_by_key(|n| n.offset);
    for piece in pieces {
        let size = body.size();
        if let Some(known) = size.checked_sub(piece.offset)
            && let Some(more) = usize::try_from(known)
                .ok()
                .and_then(|at| piece.bytes.get(at..))
        {
            Arc::make_mut(&mut body.tail).extend_from_slice(more);
        }
    }
}
