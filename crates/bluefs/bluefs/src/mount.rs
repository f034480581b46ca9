//! Mounts a file system: reads its metadata, claims its zones and begins a new journal.
//!
//! Superblock → journal → is the data of every extent below its zone's write pointer? If not, the frame that named it
//! was never acknowledged: replay again and stop before it → scan the records of logs → is anything missing that a
//! durability mark covers? Then only a mount that accepts damage continues → claim zones → (unless read-only) begin a
//! new journal, so that nothing after a torn frame is ever taken for a newer frame.

use crate::cache::BlockCache;
use crate::cleaner::Cleaner;
use crate::end::End;
use crate::epochs;
use crate::failing::Failing;
use crate::format::superblock::{Role, Superblock};
use crate::journal::Journal;
use crate::left_behind::recover_unsynced;
use crate::look;
use crate::mirror::{Mirror, Mirrored};
use crate::namespace::Namespace;
use crate::options::MountOptions;
use crate::replay::{self, Replayed};
use crate::ring::ring_zones;
use crate::shared::Shared;
use crate::state::State;
use crate::statistics::Counters;
use crate::unsynced::Unsynced;
use crate::wake::Wake;
use crate::worn_out::WornOut;
use crate::zone_table::ZoneTable;
use crate::{Error, Result};
use appender::Flusher;
use device::ZonedDevice;
use runtime::sync::{Condvar, Mutex};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use zone::{ZoneAddress, ZoneId};
use zone_alloc::{Owner, ZonePool};

/// A mounted file system, except for its public handle.
pub(crate) struct Mounted {
    pub shared: Arc<Shared>,
    pub cleaner: Option<Arc<Cleaner>>,
    /// Unsynced bytes of logs, kept beside the drive, were appended to the logs in memory.
    pub has_recovered: bool,
}

pub(crate) fn mount(
    device: Arc<dyn ZonedDevice>,
    pool: Arc<ZonePool>,
    options: MountOptions,
) -> Result<Mounted> {
    let g = device.geometry().clone();
    let (rings, superblock) = look::find(&*device)?;
    if options.role.is_some_and(|role| role != superblock.role) {
        return Err(Error::OtherRole {
            contents: Box::new(look::look(&*device)?),
        });
    }
    // The caller has divided the conventional zones by `BlueFs::view`.
    if superblock.conventional_parts != g.conventional_parts {
        return Err(Error::GeometryChanged {
            what: "parts of a conventional zone",
            expected: superblock.conventional_parts.into(),
            found: g.conventional_parts.into(),
        });
    }
    let drive = device;
    let device: Arc<dyn Mirror> = Arc::new(Mirrored::new(drive.clone()));
    let (superblock, newer) = epochs::newest(&*device, superblock);
    if let Some(error) = newer.clone().filter(|_| !options.accept_damage) {
        return Err(error);
    }
    let Replayed {
        names,
        journal,
        lacking,
        missing,
        damage,
        losses,
        report,
    } = replay::read(&*device, &superblock, &options)?;
    let damage: Vec<Error> = newer.into_iter().chain(damage).collect();
    if let Some(first) = damage.first().filter(|_| !options.accept_damage) {
        return Err(first.clone());
    }
    if let Some(agreed) = &options.agreed {
        agreed.check(&damage, losses.as_ref())?;
    }
    for error in &damage {
        // A caller that accepts damage can ask for it by `BlueFs::damage`.
        tracing::info!(%error, "going on without changes that were acknowledged");
    }
    let left = recover_unsynced(&*device, &superblock, &names, options.read_only)?;
    let zones = claim(&*device, &pool, &names, &superblock, &journal)?;
    if superblock.role == Role::Alone {
        pool.set_bluefs_alone();
    }
    let end = Arc::<End>::default();
    let cache = Arc::new(BlockCache::new(options.cache_bytes));
    let keep_unsynced = options.keep_unsynced && !options.read_only;
    let unsynced = Arc::new(Unsynced::new(
        drive.clone(),
        keep_unsynced,
        superblock.uuid,
        superblock.journal_epoch,
        &left,
    ));
    let state = State {
        end: end.clone(),
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
        names_grown: 0,
        snapshot_length: Cell::default(),
        retries: Default::default(),
        last_retried: None,
        locks: BTreeSet::new(),
        cache: cache.clone(),
        unsynced: unsynced.clone(),
        runs: 0,
        // A mount for writing has accepted the damage, and its new journal begins without it.
        damage: if options.read_only {
            damage
        } else {
            Vec::new()
        },
        salvaged: losses,
    };
    let shared = Shared {
        device,
        drive,
        pool,
        runtime: options.runtime,
        read_only: options.read_only,
        copies: superblock.copies(),
        state: Mutex::new(state),
        journaling: Mutex::new(()),
        batches: runtime::sync::atomic::AtomicU64::new(0),
        end,
        closing: AtomicBool::new(false),
        unmounted: AtomicBool::new(false),
        witness: Mutex::default(),
        flusher: Flusher::default(),
        recycled: Condvar::new(),
        moving: Mutex::new(()),
        wake: Wake::default(),
        failing: Failing::default(),
        missing,
        worn_out: WornOut::default(),
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
        has_recovered: !left.is_empty() && !shared.read_only,
        shared,
    })
}

/// Claims all zones of the file system from the pool, and counts the live data in each.
fn claim(
    device: &dyn Mirror,
    pool: &ZonePool,
    names: &Namespace,
    superblock: &Superblock,
    journal: &Journal,
) -> Result<ZoneTable> {
    let g = device.geometry();
    let mut zones = ZoneTable::new(g.clone());
    let refuse = |zone: ZoneId| Error::Corrupt {
        at: ZoneAddress::new(zone, 0),
        what: "a zone that is not ours or not there",
        expected: u64::from(g.zone_count),
        found: u64::from(zone.0),
    };
    let claim = |zone: ZoneId| pool.claim(zone, Owner::BlueFs).map_err(|_| refuse(zone));
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
            zones
                .claim_data(zone, node.inode, blocks)
                .map_err(|_| Error::Corrupt {
                    at: ZoneAddress::new(zone, 0),
                    what: "a file in a zone of the journal or of superblocks, inode",
                    expected: 0,
                    found: node.inode,
                })?;
        }
    }
    let mut ours: BTreeSet<ZoneId> = names.owned.clone();
    ours.extend(g.zones().filter(|zone| !zones.is_foreign(*zone)));
    device.keep_pairs(&ours);
    for zone in ours.clone() {
        if let Some(twin) = device.twin(zone) {
            claim(twin)?;
            // Two zones have the same twin, or the twin has another use as well.
            if !ours.insert(twin) {
                return Err(refuse(twin));
            }
        }
    }
    Ok(zones)
}
