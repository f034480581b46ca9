//! Opens a store's database and the file system below it, before any of their contents is trusted.

use crate::database::{DIRECTORY, kv_options};
use crate::format::key;
use crate::format::record::{SuperRecord, decode_number};
use crate::options::MountOptions;
use crate::recovery::{self, Recovery};
use crate::rows::corrupt;
use crate::{Error, Result};
use bluefs::{BlueFs, Role};
use device::ZonedDevice;
use device::watch::{UnderWay, Watch};
use kv::Kv;
use std::sync::Arc;
use zone::{ZoneDescriptor, ZoneId};
use zone_alloc::ZonePool;

/// A store's open database, with its log replayed as far as it counts.
pub(crate) struct Opened {
    pub device: Arc<dyn ZonedDevice>,
    pub under_way: Arc<UnderWay>,
    /// The drive's report of all zones, from before anything was written.
    pub report: Vec<ZoneDescriptor>,
    /// Zones of BlueFS are claimed, those of the store not yet.
    pub pool: Arc<ZonePool>,
    pub fs: BlueFs,
    pub kv: Kv,
    pub recovery: Recovery,
    pub record: SuperRecord,
}

impl Opened {
    /// Opens a store; [`Error::SalvageUnfinished`] if a salvage in place has not ended.
    pub fn open(device: Arc<dyn ZonedDevice>, options: &MountOptions) -> Result<Self> {
        let opened = Self::open_unfinished(device, options)?;
        match opened.salvage_stage()? {
            None => Ok(opened),
            Some(_) => Err(Error::SalvageUnfinished),
        }
    }

    /// Stage of a salvage in place that has not ended: 1 or 2.
    pub fn salvage_stage(&self) -> Result<Option<u64>> {
        let key = key::SUPER_SALVAGE;
        let stage = self.kv.get(key)?.map(|value| {
            decode_number(&value).ok_or_else(|| corrupt(key, "no number", value.len()))
        });
        stage.transpose()
    }

    /// Opens a store, even if a salvage in place has not ended.
    pub fn open_unfinished(device: Arc<dyn ZonedDevice>, options: &MountOptions) -> Result<Self> {
        let watch = Watch::new(device, options.runtime.clone());
        let under_way = watch.under_way().clone();
        let refused = |error| match error {
            bluefs::Error::OtherRole { contents } => Error::NoStore { contents },
            bluefs::Error::NotFormatted => Error::NotFormatted,
            error => error.into(),
        };
        let device = BlueFs::view(Arc::new(watch)).map_err(refused)?;
        let geometry = device.geometry().clone();
        let report = device.report(ZoneId(0), geometry.zone_count)?;
        let pool = Arc::new(ZonePool::new(geometry.clone(), &report));
        let fs_options = bluefs::MountOptions {
            read_only: options.read_only,
            role: Some(Role::Shared),
            accept_damage: options.read_only && options.accept_damage,
            cleaning: options.background.then(bluefs::Cleaning::default),
            runtime: options.runtime.clone(),
            ..bluefs::MountOptions::default()
        };
        let fs = BlueFs::mount(device.clone(), pool.clone(), fs_options).map_err(refused)?;
        let missing = fs.missing()?.into_iter().next();
        let accepted = options.read_only && options.accept_damage;
        if let Some(missing) = missing.clone().filter(|_| !accepted) {
            return Err(missing.into());
        }
        if !fs.exists(DIRECTORY) {
            // The directory may be what damage has taken.
            return Err(missing.map_or(Error::Incomplete, Error::from));
        }
        let copies = fs.copies();
        let mut kv_options = kv_options(&geometry, copies, options.block_cache_bytes);
        let mut open = || -> Result<_> {
            kv_options.read_only = false;
            let recovery = recovery::dry_run(
                &*options.engine,
                &*device,
                &report,
                &fs,
                DIRECTORY,
                &kv_options,
            )?;
            kv_options.read_only = options.read_only;
            let filter = Some(recovery::filter(&recovery, &fs));
            let kv = Kv::open(&*options.engine, &fs, DIRECTORY, &kv_options, filter)?;
            Ok((recovery, kv))
        };
        // The engine's errors for files that a repair of the file system went on without.
        let is_gone = |error: &Error| {
            matches!(
                error,
                Error::Kv(kv::Error::Invalid { .. } | kv::Error::NotFound { .. })
            )
        };
        // An SST with one damaged copy can be read from the other one.
        let (recovery, kv) = match open() {
            Err(error) if copies > 1 => {
                tracing::warn!(%error, "the database cannot be opened; comparing both copies of its files");
                fs.repair_copies()?;
                open().map_err(|error| {
                    if is_gone(&error) {
                        Error::Incomplete
                    } else {
                        error
                    }
                })?
            }
            Err(error) if is_gone(&error) => {
                tracing::error!(%error, "the database cannot be opened");
                return Err(Error::Incomplete);
            }
            opened => opened?,
        };
        let record = recovery::check_format(&kv)?;

        Ok(Self {
            device,
            under_way,
            report,
            pool,
            fs,
            kv,
            recovery,
            record,
        })
    }

    /// Flushes and unmounts everything.
    pub fn close(self) -> Result<()> {
        self.kv.flush()?;
        self.kv.close()?;
        self.fs.unmount()?;
        Ok(())
    }
}
