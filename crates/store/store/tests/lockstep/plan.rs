//! The drive and the mount options of a run, chosen by its seed.

use crate::common::{create_collection, geometry};
use device::wrap::faults::{Fault, Faults, Plan as FaultPlan};
use device::{FileDrive, MemoryDrive, PowerCut, ZonedDevice};
use kv_log::KvLog;
use kv_rocksdb::RocksDb;
use runtime::Runtime;
use std::io;
use std::sync::Arc;
use store::{
    ChecksumBlock, ChecksumKind, Codec, CompressionMode, MkfsOptions, MountOptions, Result, Store,
};
use tempfile::TempDir;
use zone::{Geometry, ZoneCommand};
use zone_alloc::{CostBenefit, Greedy};

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum On {
    Memory,
    /// In memory, with zones hardly larger than the pieces that are compressed together.
    TinyZones,
    File,
    /// Commands fail now and then.
    Faulty,
    /// The power is cut now and then.
    PowerCut,
}

#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub on: On,
    pub is_small: bool,
    pub seed: u64,
}

pub enum Drive {
    Memory(Arc<MemoryDrive>),
    File(TempDir),
    Faulty(Arc<Faults<MemoryDrive>>),
    PowerCut(Arc<PowerCut>),
}

impl Plan {
    /// Shapes that the store treats differently: zone append, few active zones, no conventional zones, small ones.
    pub fn geometry(self) -> Geometry {
        let shape = self.shape();
        // With power cuts, every second drive has tiny zones, so that zones are soon reused.
        let is_tiny = match self.on {
            On::TinyZones => true,
            On::PowerCut => self.seed % 2 == 1,
            _ => false,
        };
        if !is_tiny {
            return shape;
        }
        Geometry {
            zone_size: 128 << 10,
            zone_capacity: shape.zone_capacity.min(120 << 10),
            zone_count: 44,
            ..shape
        }
    }

    fn shape(self) -> Geometry {
        match self.seed % 4 {
            0 => geometry(64),
            1 => Geometry {
                conventional_zones: 0,
                zone_capacity: 840 << 10,
                max_append_bytes: 128 << 10,
                ..geometry(72)
            },
            2 => Geometry {
                zone_size: 256 << 10,
                zone_capacity: 256 << 10,
                ..geometry(280)
            },
            _ => Geometry {
                conventional_zones: 0,
                ..geometry(64)
            },
        }
    }

    pub fn options(self, number: u32) -> MountOptions {
        let defaults = if self.is_small {
            MountOptions::new(KvLog)
        } else {
            MountOptions::new(RocksDb)
        };
        let mut options = MountOptions {
            background: false,
            runtime: Runtime::seeded(self.seed),
            block_cache_bytes: 1 << 20,
            data_cache_bytes: u64::from(number / 2 % 2) << 20,
            ..defaults
        };
        if number % 3 == 1 {
            options.policy = Arc::new(Greedy);
        } else {
            options.policy = Arc::new(CostBenefit);
        }
        if number % 2 == 1 {
            let number = (number / 6) as usize;
            let kinds = [ChecksumKind::Crc32c, ChecksumKind::Xxh3, ChecksumKind::None];
            let modes = [
                CompressionMode::Force,
                CompressionMode::Aggressive,
                CompressionMode::Passive,
                CompressionMode::None,
            ];
            options.data.checksum = kinds[number % 3];
            options.data.checksum_block = ChecksumBlock::all().nth(number / 3 % 6).unwrap();
            options.data.compression.mode = modes[number / 18 % 4];
            options.data.compression.codec = [Codec::Zstd, Codec::Lz4][number / 72 % 2];
        }
        options
    }

    pub fn format(self, device: Arc<dyn ZonedDevice>) -> Store {
        let options = self.options(self.seed as u32 / 4);
        let made = MkfsOptions {
            engine: options.engine.clone(),
            uuid: [7; 16],
            runtime: options.runtime.clone(),
            ..MkfsOptions::new(KvLog)
        };
        Store::mkfs(device.clone(), &made).unwrap();
        let store = Store::mount(device, options).unwrap();
        create_collection(&store);
        store
    }

    pub fn begin(self) -> (Drive, Store) {
        let geometry = self.geometry();
        let drive = match self.on {
            On::Memory | On::TinyZones => {
                Drive::Memory(Arc::new(MemoryDrive::new(geometry).unwrap()))
            }
            On::Faulty => Drive::Faulty(Arc::new(Faults::new(MemoryDrive::new(geometry).unwrap()))),
            On::PowerCut => Drive::PowerCut(Arc::new(PowerCut::new(geometry).unwrap())),
            On::File => {
                let folder = tempfile::tempdir().unwrap();
                drop(FileDrive::create(folder.path().join("drive"), &geometry, "test").unwrap());
                Drive::File(folder)
            }
        };
        let store = self.format(drive.device());
        (drive, store)
    }
}

impl Drive {
    fn device(&self) -> Arc<dyn ZonedDevice> {
        match self {
            Self::Memory(drive) => drive.clone(),
            Self::Faulty(drive) => drive.clone(),
            Self::PowerCut(drive) => drive.clone(),
            Self::File(folder) => Arc::new(FileDrive::open(folder.path().join("drive")).unwrap()),
        }
    }

    /// Makes the drive fail soon: cuts the power after `number` commands, or lets one command fail that `number`
    /// chooses.
    pub fn trouble(&self, number: u64) {
        match self {
            Self::PowerCut(drive) => drive.cut_after(number),
            Self::Faulty(drive) => {
                let commands = [
                    ZoneCommand::Read,
                    ZoneCommand::Write,
                    ZoneCommand::Append,
                    ZoneCommand::Write,
                    ZoneCommand::Reset,
                    ZoneCommand::Finish,
                    ZoneCommand::Flush,
                ];
                let command = commands[number as usize % commands.len()];
                let fault = match number % 2 {
                    0 => Fault::Io(io::ErrorKind::Other),
                    _ => Fault::Torn {
                        bytes: number * 512,
                    },
                };
                drive.add(FaultPlan::at(command, 1 + number / 8, fault));
            }
            Self::Memory(_) | Self::File(_) => {}
        }
    }

    /// Whether commands may fail at present.
    pub fn is_failing(&self) -> bool {
        matches!(self, Self::Faulty(_)) || self.is_off()
    }

    pub fn is_off(&self) -> bool {
        matches!(self, Self::PowerCut(drive) if drive.is_cut())
    }

    /// Whether a command has failed since the run began.
    pub fn has_failed(&self) -> bool {
        match self {
            Self::Faulty(drive) => drive.struck() > 0,
            _ => self.is_off(),
        }
    }

    /// Restarts the drive after its store has stopped, cleanly or not. After a power cut, `kept` chooses which
    /// unflushed data is left.
    pub fn restart(&mut self, kept: u64) {
        match self {
            Self::PowerCut(drive) => {
                let state = drive.random_crash_state(kept);
                *drive = Arc::new(drive.restart(&state));
            }
            Self::Faulty(drive) => drive.clear(),
            Self::Memory(_) | Self::File(_) => {}
        }
    }

    pub fn mount(&self, plan: &Plan, number: u32) -> Result<Store> {
        Store::mount(self.device(), plan.options(number))
    }
}
