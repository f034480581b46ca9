//! Making a store on a drive, and finding everything again.
//!
//! At mount the drive's write pointers decide. Order: BlueFS claims its zones → the log is run dry
//! (see `recovery`) and then for real → the freelist claims the store's zones → what nobody
//! claims was never acknowledged and is reset.

use crate::cleaner::Cleaner;
use crate::cleaning;
use crate::format::record::{CollectionRecord, SuperRecord, decode_counters, decode_number};
use crate::format::{FORMAT_VERSION, key};
use crate::freelist::{Freelist, SetAside};
use crate::host_space::HostSpace;
use crate::inner::{CLEANER_RESERVE_ZONES, Inner, METADATA_FIXED_ZONES, Numbers, Stripes};
use crate::open_maps::OpenMaps;
use crate::recovery;
use crate::rows::corrupt;
use crate::stream::{Stream, why_set_aside};
use crate::watchdog::Watchdog;
use crate::{Error, Result};
use bluefs::{BlueFs, FormatOptions, Role};
use device::ZonedDevice;
use device::watch::Watch;
use kv::{Batch, Durability, Engine, Kv, MergeOperator, Options};
use runtime::Runtime;
use runtime::sync::{Mutex, RwLock};
use runtime::thread::JoinHandle;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};
use zone::{Geometry, ZoneAddress, ZoneDescriptor, ZoneId};
use zone_alloc::{CleaningPolicy, Greedy, Owner, Purpose, ZonePool};

const DIRECTORY: &str = "/db";
/// Smaller memtables and tables are not worth their files.
const MIN_TABLE: u64 = 256 << 10;
/// Superblock rings, journal and its successor, log, SSTs; a few for data; the reserves.
const MIN_SEQUENTIAL_ZONES: u32 = 26;

/// How a store is made.
#[derive(Clone)]
pub struct MkfsOptions {
    /// What makes the database of the metadata.
    pub engine: Arc<dyn Engine>,
    /// The store's identity.
    pub uuid: [u8; 16],
    /// Erase whatever is on the drive.
    pub force: bool,
    /// Where the times of the metadata's files come from.
    pub runtime: Runtime,
}

impl MkfsOptions {
    /// The defaults.
    pub fn new(engine: impl Engine + 'static) -> Self {
        Self {
            engine: Arc::new(engine),
            uuid: [0; 16],
            force: false,
            runtime: Runtime::system(),
        }
    }
}

/// How a store is mounted.
#[derive(Clone)]
pub struct MountOptions {
    /// What opens the database of the metadata; a database of another is refused.
    pub engine: Arc<dyn Engine>,
    /// Write nothing to the drive.
    pub read_only: bool,
    /// Read-only, go on with what lies in front of damage to what was durable; [`Store::damage`] says
    /// what is missing. Otherwise the mount is refused.
    pub accept_damage: bool,
    /// Run background threads for the cleaner and for that of BlueFS; without them, cleaning happens
    /// only when it is asked for or needed to go on (which is what a replayable test wants).
    pub background: bool,
    /// Whether the background cleaner starts by itself when free zones run low.
    pub auto_clean: bool,
    /// How it chooses.
    pub policy: Arc<dyn CleaningPolicy>,
    /// Where times, hash keys and threads come from.
    pub runtime: Runtime,
    /// Bytes of cached blocks of the database.
    pub block_cache_bytes: u64,
}

impl MountOptions {
    /// The defaults.
    pub fn new(engine: impl Engine + 'static) -> Self {
        Self {
            engine: Arc::new(engine),
            read_only: false,
            accept_damage: false,
            background: true,
            auto_clean: true,
            policy: Arc::new(Greedy),
            runtime: Runtime::system(),
            block_cache_bytes: 64 << 20,
        }
    }
}

fn kv_options(geometry: &Geometry, block_cache_bytes: u64) -> Options {
    // Compaction writes before it deletes, so that all sizes follow from what is kept free for it.
    let headroom =
        u64::from(Inner::metadata_headroom(geometry.zone_count)) * geometry.zone_capacity;
    let table = geometry.zone_capacity.min(256 << 20) / 16 * 15;
    Options {
        create_if_missing: false,
        write_buffer_bytes: (headroom / 32).clamp(MIN_TABLE, 64 << 20),
        target_file_bytes: table.min(headroom / 24).max(MIN_TABLE),
        max_compaction_bytes: headroom / 2,
        block_cache_bytes,
        max_manifest_bytes: (geometry.zone_capacity / 32).clamp(32 << 10, 4 << 20),
        merge: vec![
            (key::FREELIST, MergeOperator::AddI64s),
            (key::SUPER, MergeOperator::AddI64s),
        ],
        ..Options::default()
    }
}

fn report_all(device: &dyn ZonedDevice) -> Result<Vec<ZoneDescriptor>> {
    Ok(device.report(ZoneId(0), device.geometry().zone_count)?)
}

pub(crate) fn mkfs(device: Arc<dyn ZonedDevice>, options: &MkfsOptions) -> Result<()> {
    let geometry = device.geometry().clone();
    let sequential = geometry.zone_count - geometry.conventional_zones;
    if sequential < MIN_SEQUENTIAL_ZONES {
        return Err(Error::DriveTooSmall {
            found: sequential,
            needed: MIN_SEQUENTIAL_ZONES,
        });
    }
    let format = FormatOptions {
        uuid: options.uuid,
        role: Role::Shared,
        force: options.force,
    };
    BlueFs::format(&*device, &format)?;
    let pool = Arc::new(ZonePool::new(geometry.clone(), &report_all(&*device)?));
    let fs_options = bluefs::MountOptions {
        runtime: options.runtime.clone(),
        ..bluefs::MountOptions::default()
    };
    let fs = BlueFs::mount(device, pool, fs_options)?;
    fs.create_directory(DIRECTORY)?;
    let kv_options = Options {
        create_if_missing: true,
        ..kv_options(&geometry, 1 << 20)
    };
    let kv = Kv::open(&*options.engine, &fs, DIRECTORY, &kv_options, None)?;
    let record = SuperRecord {
        version: FORMAT_VERSION,
        uuid: options.uuid,
    };
    let mut batch = Batch::default();
    batch.put(key::SUPER_FORMAT, &record.encode());
    kv.write(&batch, Durability::Synced)?;
    kv.flush()?;
    kv.close()?;
    fs.unmount()?;
    Ok(())
}

/// A store, and the threads beside it.
pub(crate) struct Mounted {
    pub inner: Arc<Inner>,
    pub cleaner: Option<JoinHandle<()>>,
    pub watchdog: Option<Watchdog>,
}

pub(crate) fn mount(device: Arc<dyn ZonedDevice>, options: &MountOptions) -> Result<Mounted> {
    let watch = Watch::new(device, options.runtime.clone());
    let under_way = watch.under_way().clone();
    let device: Arc<dyn ZonedDevice> = Arc::new(watch);
    let geometry = device.geometry().clone();
    let report = report_all(&*device)?;
    let pool = Arc::new(ZonePool::new(geometry.clone(), &report));
    let fs_options = bluefs::MountOptions {
        read_only: options.read_only,
        role: Some(Role::Shared),
        accept_damage: options.read_only && options.accept_damage,
        cleaning: options.background.then(bluefs::Cleaning::default),
        runtime: options.runtime.clone(),
        ..bluefs::MountOptions::default()
    };
    let fs = BlueFs::mount(device.clone(), pool.clone(), fs_options).map_err(|e| match e {
        bluefs::Error::OtherRole { contents } => Error::NoStore { contents },
        bluefs::Error::NotFormatted => Error::NotFormatted,
        error => error.into(),
    })?;
    let missing = fs.missing()?.into_iter().next();
    let accepted = options.read_only && options.accept_damage;
    if let Some(missing) = missing.clone().filter(|_| !accepted) {
        return Err(missing.into());
    }
    if !fs.exists(DIRECTORY) {
        // What is damaged may be all that there was.
        return Err(missing.map_or(Error::Incomplete, Error::from));
    }
    let mut kv_options = kv_options(&geometry, options.block_cache_bytes);
    let recovery = recovery::dry_run(
        &*options.engine,
        &*device,
        &report,
        &fs,
        DIRECTORY,
        &kv_options,
    )?;
    kv_options.read_only = options.read_only;
    let kv = Kv::open(
        &*options.engine,
        &fs,
        DIRECTORY,
        &kv_options,
        Some(recovery::filter(&recovery)),
    )?;
    let record = recovery::check_format(&kv)?;

    let freelist = Arc::new(Freelist::new(geometry.zone_count, geometry.zone_capacity));
    let partly = load_freelist(&kv, &report, &pool, &freelist)?;
    freelist.apply(&BTreeMap::new(), inline_bytes(&kv)?.cast_signed());
    let stream = |purpose| Stream::new(device.clone(), pool.clone(), freelist.clone(), purpose);
    let (data, moved) = (stream(Purpose::Data), stream(Purpose::Cleaning));
    let mut at_mount = (0, 0);
    if !options.read_only {
        for zone in pool.unclaimed() {
            match device.reset(zone) {
                Ok(()) => {
                    let written = report.get(zone.index()).map_or(0, |z| z.write_pointer);
                    at_mount = (at_mount.0 + 1, at_mount.1 + written);
                    pool.give_back(zone);
                }
                Err(error) => {
                    tracing::warn!(%error, %zone, "a zone cannot be reset; it is out of use");
                    pool.retire(zone);
                }
            }
        }
        resume(&*device, &freelist, &data, &moved, partly);
    } else {
        count_as_resumed(&freelist, &report, pool.unclaimed(), partly);
    }
    let number = |key: &[u8]| -> Result<u64> {
        let Some(value) = kv.get(key)? else {
            return Ok(1);
        };
        decode_number(&value).ok_or_else(|| corrupt(key, "no number", value.len()))
    };
    let next_collection = u32::try_from(number(key::SUPER_NEXT_COLLECTION)?).unwrap_or(u32::MAX);
    let open_maps = OpenMaps::default();
    open_maps.doom(load_doomed(&kv)?);
    let inner = Arc::new(Inner {
        numbers: Numbers::new(number(key::SUPER_NEXT_NUMBER)?),
        shared_blobs: Mutex::default(),
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
        stripes: Stripes::new(options.runtime.keyed_hash()),
        mutators: RwLock::new(()),
        gate: Arc::default(),
        open_maps,
        cleaner: Arc::new(Cleaner::new(
            options.policy.clone(),
            options.auto_clean && !options.read_only,
            at_mount,
        )),
        runtime: options.runtime.clone(),
        next_batch: AtomicU64::new(recovery.highest + 1),
        acknowledged: AtomicU64::new(0),
        reservation: Mutex::default(),
        host_space: HostSpace::new(options.runtime.clone()),
        // What an earlier mount left is not known: one put may have it looked for.
        garbage: AtomicU64::new(1),
        read_only: options.read_only,
        failure: OnceLock::new(),
        uuid: record.uuid,
    });
    inner.update_reserves();
    let (mut thread, mut watchdog) = (None, None);
    if options.background {
        watchdog = Watchdog::start(&inner.runtime, inner.under_way.clone())
            .map_err(|error| tracing::error!(%error, "no watchdog"))
            .ok();
    }
    if !options.read_only {
        inner.purge_doomed()?;
        if options.background {
            thread = cleaning::spawn(&inner)
                .map_err(|error| tracing::error!(%error, "no cleaner"))
                .ok();
        }
    }
    Ok(Mounted {
        inner,
        cleaner: thread,
        watchdog,
    })
}

/// Bytes in inline extents.
pub(crate) fn inline_bytes(kv: &Kv) -> Result<u64> {
    let key = key::SUPER_INLINE;
    let Some(value) = kv.get(key)? else {
        return Ok(0);
    };
    decode_number(&value).ok_or_else(|| corrupt(key, "no number", value.len()))
}

/// Zones that could be written on, with their write pointers.
type PartlyWritten = Vec<(ZoneId, u64)>;

fn load_freelist(
    kv: &Kv,
    report: &[ZoneDescriptor],
    pool: &ZonePool,
    freelist: &Freelist,
) -> Result<PartlyWritten> {
    let mut partly = Vec::new();
    for row in kv.scan(&[key::FREELIST], Some(&[key::FREELIST + 1])) {
        let (key, value) = row?;
        let (Some(zone), Some((written, dead))) =
            (key::parse_freelist(&key), decode_counters(&value))
        else {
            return Err(corrupt(&key, "no freelist entry", value.len()));
        };
        // Without live bytes the zone has been given up, whatever has become of it since.
        let Ok(live @ 1..) = u64::try_from(written.saturating_sub(dead)) else {
            continue;
        };
        let drive = report
            .get(zone.index())
            .ok_or_else(|| corrupt(&key, "a zone behind the end of the drive", zone.index()))?;
        pool.claim(zone, Owner::Store)
            .map_err(|_| corrupt(&key, "a zone that BlueFS owns too", zone.index()))?;
        let written = if drive.write_pointer_valid() {
            drive.write_pointer
        } else {
            written.unsigned_abs()
        };
        if live > written {
            tracing::error!(%zone, live, write_pointer = written, "live data above the write pointer");
        }
        freelist.adopt(zone, written.max(live), live);
        if let Some(why) = why_set_aside(drive.condition) {
            let what = format!("zone {zone} is {:?}", drive.condition);
            tracing::error!(%zone, ?why, "a zone with object data is set aside");
            freelist.set_aside(zone, why, what);
        }
        if drive.write_pointer_valid() && written < drive.capacity {
            let behind = key::cleaning(ZoneAddress::new(zone, written));
            let end = key::cleaning(ZoneAddress::new(zone, u64::MAX));
            if kv.scan(&behind, Some(&end)).next().transpose()?.is_some() {
                // What is appended here would take the place of an extent that is lost, and go with it.
                let what = format!("zone {zone} ends at byte {written}, in front of live data");
                tracing::error!(what, "a zone with object data is set aside");
                freelist.set_aside(zone, SetAside::Unreadable, what);
            }
            partly.push((zone, written));
        }
    }
    Ok(partly)
}

/// Goes on in the zones that were open: the emptiest for data, the next for the cleaner. Others
/// are finished, so that they hold no active resource, and so are those that are set aside.
fn resume(
    device: &dyn ZonedDevice,
    freelist: &Freelist,
    data: &Stream,
    moved: &Stream,
    mut partly: PartlyWritten,
) {
    partly.sort_unstable_by_key(|(zone, written)| (freelist.is_set_aside(*zone), *written, *zone));
    for (index, (zone, written)) in partly.into_iter().enumerate() {
        match index {
            0 | 1 if freelist.is_set_aside(zone) => finish(device, zone),
            0 => data.resume(zone, written),
            1 => moved.resume(zone, written),
            _ => finish(device, zone),
        }
    }
}

fn finish(device: &dyn ZonedDevice, zone: ZoneId) {
    if let Err(error) = device.finish(zone) {
        tracing::warn!(%error, %zone, "a zone cannot be finished");
    }
}

/// Counts zones as a mount for writing would find them, so that the space reported is the same:
/// what nobody claims is dead, and the rest of a zone that would be gone on with is free.
fn count_as_resumed(
    freelist: &Freelist,
    report: &[ZoneDescriptor],
    unclaimed: Vec<ZoneId>,
    mut partly: PartlyWritten,
) {
    for zone in unclaimed {
        let written = report.get(zone.index()).map_or(0, |z| z.write_pointer);
        freelist.adopt(zone, written, 0);
    }
    partly.retain(|(zone, _)| !freelist.is_set_aside(*zone));
    partly.sort_unstable_by_key(|(zone, written)| (*written, *zone));
    for (zone, _) in partly.into_iter().take(2) {
        freelist.open(zone);
    }
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

// The reserves have to leave room for data on the smallest drive allowed.
const _: () = assert!(MIN_SEQUENTIAL_ZONES > METADATA_FIXED_ZONES + 8 + CLEANER_RESERVE_ZONES);
