//! Mounts a store: builds its state in memory from the drive.
//!
//! The drive's write pointers decide. Order: BlueFS claims its zones → the log is replayed in a dry run (see
//! `recovery`) and then for real → the freelist claims the store's zones → zones that remain unclaimed hold nothing
//! that was acknowledged and are reset.

use crate::Result;
use crate::cleaner::{Cleaner, CleanerChange};
use crate::cleaning::CleaningThread;
use crate::data_cache::DataCache;
use crate::format::key;
use crate::format::record::{CollectionRecord, decode_number};
use crate::freelist::Freelist;
use crate::host_space::HostSpace;
use crate::inner::Inner;
use crate::known_damage::readable_again;
use crate::lifetimes::Lifetimes;
use crate::numbers::Numbers;
use crate::open_maps::OpenMaps;
use crate::opened::Opened;
use crate::options::MountOptions;
use crate::requests::UserRequests;
use crate::retired::Retired;
use crate::rows::corrupt;
use crate::scrub::ScrubThread;
use crate::scrubber::Scrubber;
use crate::stream::Stream;
use crate::streams::Streams;
use crate::stripes::Stripes;
use crate::uncopied;
use crate::unreset::Unreset;
use crate::watchdog::Watchdog;
use crate::zones_at_mount::{ZonesFound, count_as_resumed, load_freelist, resume};
use device::ZonedDevice;
use kv::Kv;
use runtime::sync::{Mutex, RwLock};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};
use zone_alloc::{ByLifetime, Purpose};

/// Steps of the purge of doomed maps that a mount carries out itself.
const PURGED_AT_MOUNT: u32 = 16;

/// The background threads of a store, which end when this is dropped.
#[derive(Default)]
pub(crate) struct Threads {
    cleaner: Option<CleaningThread>,
    scrub: Option<ScrubThread>,
    watchdog: Option<Watchdog>,
}

pub(crate) fn mount(
    device: Arc<dyn ZonedDevice>,
    options: &MountOptions,
) -> Result<(Arc<Inner>, Threads)> {
    mount_opened(Opened::open(device, options)?, options)
}

/// Mounts a store whose database is open already.
pub(crate) fn mount_opened(
    opened: Opened,
    options: &MountOptions,
) -> Result<(Arc<Inner>, Threads)> {
    let (under_way, mut recovery) = (opened.under_way, opened.recovery);
    let (device, report, pool) = (opened.device, opened.report, opened.pool);
    let (fs, kv, record) = (opened.fs, opened.kv, opened.record);
    let geometry = device.geometry().clone();
    let freelist = Arc::new(Freelist::new(geometry.zone_count, geometry.zone_capacity));
    let ZonesFound { partly, lost } = load_freelist(&kv, &report, &pool, &freelist)?;
    let retired = Retired::load(&kv, &fs, &pool)?;
    freelist.apply(&BTreeMap::new(), inline_bytes(&kv)?.cast_signed(), 0);
    let stream = |purpose| Stream::new(device.clone(), pool.clone(), freelist.clone(), purpose);
    let streams = ByLifetime::within(pool.store_streams());
    let data = Streams::new(streams.user_streams(), || stream(Purpose::Data));
    let moved = Streams::new(streams.moved_streams(), || stream(Purpose::Cleaning));
    let mut at_mount = (0, 0);
    let mut unreset = Unreset::default();
    let mut readable = BTreeSet::new();
    if !options.read_only {
        retired.finish_open(&*device, &report, &pool, &freelist);
        let unclaimed = pool.unclaimed();
        readable = readable_again(&kv, &fs, &*device, (&retired, &unclaimed))?;
        let resets = appender::reset_or_retire(&unclaimed, |zone| device.reset(zone))?;
        for zone in resets.broken {
            pool.retire(zone);
            if readable.contains(&zone) {
                unreset.add(zone, options.runtime.now());
            }
        }
        for zone in resets.empty {
            let written = report.get(zone.index()).map_or(0, |z| z.write_pointer);
            at_mount = (at_mount.0 + 1, at_mount.1 + written);
            match readable.contains(&zone) {
                true => pool.give_back(zone),
                // Worn out: BlueFS must not take it.
                false => pool.retire(zone),
            }
        }
    }
    let number = |key: &[u8]| -> Result<u64> {
        let Some(value) = kv.get(key)? else {
            return Ok(1);
        };
        decode_number(&value).ok_or_else(|| corrupt(key, "no number", value.len()))
    };
    let stopped = kv.get(key::SUPER_SCRUB_STOPPED)?;
    let stopped = stopped.and_then(|value| decode_number(&value)).unwrap_or(0);
    let next_collection = u32::try_from(number(key::SUPER_NEXT_COLLECTION)?).unwrap_or(u32::MAX);
    let (uncopied, summaries) = uncopied::at_mount(&kv, &mut recovery)?;
    let open_maps = OpenMaps::default();
    open_maps.doom(load_doomed(&kv)?);
    let inner = Arc::new(Inner {
        shows: AtomicU64::default(),
        numbers: Numbers::new(number(key::SUPER_NEXT_NUMBER)?),
        shared_blobs: Mutex::default(),
        unsynced: Default::default(),
        next_collection: AtomicU32::new(next_collection),
        collections: RwLock::new(Arc::new(load_collections(&kv)?)),
        collection_changes: RwLock::new(()),
        device,
        under_way,
        pool,
        fs,
        kv: RwLock::new(Some(kv)),
        freelist,
        uncommitted: Arc::default(),
        data,
        moved,
        summaries,
        uncopied: Mutex::new(uncopied),
        lifetimes: Lifetimes::new(streams, options.runtime.keyed_hash(), geometry.zone_count),
        stripes: Stripes::new(options.runtime.keyed_hash()),
        mutators: RwLock::new(()),
        gate: Arc::default(),
        reset_waits: AtomicBool::default(),
        data_cache: DataCache::new(options.data_cache_bytes, geometry.zone_count),
        open_maps,
        cleaner: Arc::new(Cleaner::new(
            options.policy.clone(),
            options.auto_clean && !options.read_only,
            at_mount,
            options.runtime.clone(),
        )),
        readers: Default::default(),
        scrubber: Arc::new(Scrubber::new(
            options.scrub,
            stopped,
            options.runtime.clone(),
        )),
        requests: UserRequests::new(options.runtime.clone()),
        runtime: options.runtime.clone(),
        acknowledged: AtomicU64::new(0),
        reservation: Mutex::default(),
        retired,
        unreset: Mutex::new(unreset),
        met: Default::default(),
        host_space: HostSpace::new(options.runtime.clone()),
        // Garbage left by an earlier mount is unknown: at 1, the first put that lacks space has it compacted.
        taken: AtomicU64::new(0),
        settling: Mutex::default(),
        damage_file: Mutex::default(),
        garbage: AtomicU64::new(1),
        reads_repeated: AtomicU64::new(0),
        slow_commands: Arc::default(),
        read_only: options.read_only,
        not_closed: Mutex::default(),
        failure: OnceLock::new(),
        stopped_by_host: AtomicBool::default(),
        uuid: record.uuid,
        data_options: options.data,
    });
    if options.read_only {
        count_as_resumed(&inner.freelist, &report, inner.pool.unclaimed(), partly);
    } else {
        // Recorded before these zones are finished: nothing shows the loss from then on, should this mount fail.
        inner.remember_lost(&lost)?;
        let (data, moved) = (inner.data.of(0), inner.moved.of(0));
        resume(&*inner.device, &inner.freelist, data, moved, partly);
    }
    inner.update_reserves();
    inner.hold_cleaner_to(CleanerChange {
        pace: Some(options.pace),
        hours: Some(options.hours),
        free_zones: Some(options.free_zones),
    });
    if !inner.freelist.to_drain().is_empty() {
        inner.cleaner.nudge();
    }
    let mut threads = Threads::default();
    if options.background {
        threads.watchdog = Watchdog::start(
            &inner.runtime,
            inner.under_way.clone(),
            inner.slow_commands.clone(),
        )
        .map_err(|error| tracing::error!(%error, "no watchdog"))
        .ok();
    }
    if !options.read_only {
        inner.forget_damage_elsewhere(&readable)?;
        // Maps doomed in the last mount. There may be millions of rows, or the database has to be waited for: then the
        // cleaner's thread goes on, or a writer that needs space.
        let rounds = Cell::new(0);
        let goes_on = || rounds.replace(rounds.get() + 1) < PURGED_AT_MOUNT;
        if inner.takes_metadata(&*inner.kv()?, 0) {
            match inner.purge_doomed(goes_on) {
                // The cleaner's thread goes on when there is space.
                Err(error) if error.is_no_space() => {
                    tracing::warn!(%error, "what was removed is given back later");
                }
                done => _ = done?,
            }
        }
        if inner.open_maps.has_doomed() {
            inner.cleaner.nudge();
        }
        if options.background {
            threads.cleaner = CleaningThread::start(&inner)
                .map_err(|error| tracing::error!(%error, "no cleaner"))
                .ok();
            threads.scrub = ScrubThread::start(&inner)
                .map_err(|error| tracing::error!(%error, "no scrub"))
                .ok();
        }
    }
    // The log is replayed, and batches that do not count are removed from it.
    inner.fs.record_writes_kept();
    Ok((inner, threads))
}

/// Bytes in inline extents, as recorded.
pub(crate) fn inline_bytes(kv: &Kv) -> Result<u64> {
    let key = key::SUPER_INLINE;
    let Some(value) = kv.get(key)? else {
        return Ok(0);
    };
    decode_number(&value).ok_or_else(|| corrupt(key, "no number", value.len()))
}

fn load_doomed(kv: &Kv) -> Result<Vec<u64>> {
    kv.scan(&[key::DOOMED], Some(&[key::DOOMED + 1]))
        .map(|row| {
            let (key, _) = row?;
            key::parse_doomed(&key).ok_or_else(|| corrupt(&key, "no map number", key.len()))
        })
        .collect()
}

fn load_collections(kv: &Kv) -> Result<BTreeMap<String, CollectionRecord>> {
    kv.scan(&[key::COLLECTION], Some(&[key::COLLECTION + 1]))
        .map(|row| {
            let (key, value) = row?;
            let bad = || corrupt(&key, "no collection", value.len());
            let name = std::str::from_utf8(&key[1..]).map_err(|_| bad())?;
            Ok((
                name.to_owned(),
                CollectionRecord::decode(&value).ok_or_else(bad)?,
            ))
        })
        .collect()
}
