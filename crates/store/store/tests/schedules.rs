//! The store, BlueFS and the small database under thread schedules chosen by shuttle (`runtime::schedules`): puts,
//! reads, overwrites, clones, removals, cleaning and flushes at once, with the background threads of the store and of
//! BlueFS. Shuttle decides at every lock, also at those of the drive in memory, which thread runs next. Readers see one
//! whole version of an object, no thread blocks for ever, and after a power cut all acknowledged versions are there.
//!
//!     cargo test -p store --features schedules --test schedules

#![cfg(feature = "schedules")]
// Tests may panic: a failed `unwrap` is a failed test.
#![allow(clippy::unwrap_used)]

use device::power_cut::{CrashLimits, PowerCut};
use device::{MemoryDrive, ZonedDevice};
use kv_log::KvLog;
use runtime::Runtime;
use runtime::schedules::{Rng, explore, spawn, thread_rng};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use store::{Attributes, ChecksumKind, Error, MkfsOptions, MountOptions, Store, Transaction};
use zone::{Geometry, ZoneKind};

fn geometry() -> Geometry {
    Geometry {
        block_size: 4096,
        zone_size: 64 << 10,
        zone_capacity: 64 << 10,
        zone_count: 44,
        conventional_zones: 0,
        conventional_parts: 1,
        sequential_kind: ZoneKind::SequentialWriteRequired,
        max_open_zones: 14,
        max_active_zones: 14,
        max_append_bytes: 0,
    }
}

fn mount(device: Arc<dyn ZonedDevice>, background: bool) -> Store {
    mount_with(device, background, 0)
}

/// With a data cache, data has no checksums, so that stale cached bytes are not found by these.
fn mount_with(device: Arc<dyn ZonedDevice>, background: bool, data_cache_bytes: u64) -> Store {
    let mut options = MountOptions {
        runtime: Runtime::seeded(0),
        background,
        data_cache_bytes,
        ..MountOptions::new(KvLog)
    };
    if data_cache_bytes > 0 {
        options.data.checksum = ChecksumKind::None;
    }
    Store::mount(device, options).unwrap()
}

/// The bytes of a version of an object: its number, repeated; the size depends on it too.
fn data(version: u32) -> Vec<u8> {
    let size = [300, 20_000, 5_000, 70_000][version as usize % 4];
    version.to_le_bytes().repeat(size / 4)
}

/// The version of these bytes; panics if they mix two versions.
fn version(found: &[u8]) -> u32 {
    let version = u32::from_le_bytes(*found.first_chunk().unwrap());
    assert!(found == data(version), "half of version {version}");
    version
}

fn put(store: &Store, name: &str, version: u32) -> store::Result<()> {
    put_bytes(store, name, &data(version))
}

fn put_bytes(store: &Store, name: &str, data: &[u8]) -> store::Result<()> {
    let mut writer = store.writer(Some(data.len() as u64))?;
    writer.write(data)?;
    let mut transaction = Transaction::new();
    transaction.put("c", name, writer.finish()?, Attributes::new());
    store.commit(transaction)
}

fn read(store: &Store, name: &str) -> store::Result<Option<u32>> {
    Ok(read_bytes(store, name)?.map(|bytes| version(&bytes)))
}

fn read_bytes(store: &Store, name: &str) -> store::Result<Option<Vec<u8>>> {
    let reader = match store.open("c", name) {
        Err(Error::NoObject { .. }) => return Ok(None),
        opened => opened?,
    };
    let mut bytes = vec![0; reader.info().size as usize];
    reader.read_at(0, &mut bytes)?;
    Ok(Some(bytes))
}

/// Formats the drive and mounts a store with a collection.
fn made(drive: &Arc<dyn ZonedDevice>, background: bool, data_cache_bytes: u64) -> Store {
    let made = MkfsOptions {
        runtime: Runtime::seeded(0),
        ..MkfsOptions::new(KvLog)
    };
    Store::mkfs(drive.clone(), &made).unwrap();
    let store = mount_with(drive.clone(), background, data_cache_bytes);
    let mut transaction = Transaction::new();
    transaction.create_collection("c", Attributes::new());
    store.commit(transaction).unwrap();
    store
}

/// A store whose threads note in `told`, for each object, the version that was acknowledged last and one that may be
/// there instead.
#[derive(Clone)]
struct Machine {
    drive: Arc<PowerCut>,
    store: Store,
    told: Arc<Mutex<BTreeMap<String, [Option<u32>; 2]>>>,
}

impl Machine {
    fn new() -> Self {
        let drive = Arc::new(PowerCut::new(geometry()).unwrap());
        let device: Arc<dyn ZonedDevice> = drive.clone();
        Self {
            drive,
            store: made(&device, true, 0),
            told: Arc::default(),
        }
    }

    /// Replaces or removes one object five times.
    fn turn_over(&self, name: &str, first: u32) -> store::Result<()> {
        for number in first..first + 5 {
            let removes = thread_rng().gen_ratio(1, 4);
            let next = (!removes).then_some(number);
            self.told.lock().unwrap().entry(name.into()).or_default()[1] = next;
            if removes {
                let mut transaction = Transaction::new();
                transaction.remove_if_present("c", name);
                self.store.commit(transaction)?;
            } else {
                put(&self.store, name, number)?;
            }
            self.told.lock().unwrap().insert(name.into(), [next; 2]);
        }
        Ok(())
    }

    /// Overwrites an object in place.
    fn overwrite(&self) -> store::Result<()> {
        // Versions of the same size.
        for number in [3, 7, 11, 15] {
            self.told.lock().unwrap().entry("d".into()).or_default()[1] = Some(number);
            if number == 3 {
                put(&self.store, "d", number)?;
            } else {
                let mut writer = self.store.writer(None)?;
                writer.write(&data(number))?;
                let mut transaction = Transaction::new();
                transaction.write("c", "d", 0, writer.finish()?);
                self.store.commit(transaction)?;
            }
            self.told
                .lock()
                .unwrap()
                .insert("d".into(), [Some(number); 2]);
        }
        Ok(())
    }

    /// Clones an object that another thread overwrites, checks that the clone is one whole version, and removes it.
    fn copy(&self) -> store::Result<()> {
        for _ in 0..5 {
            let mut transaction = Transaction::new();
            transaction.clone_object(("c", "d"), ("c", "copy"));
            match self.store.commit(transaction) {
                Err(Error::NoObject { .. }) => continue,
                done => done?,
            }
            read(&self.store, "copy")?;
            let mut transaction = Transaction::new();
            transaction.remove("c", "copy");
            if thread_rng().gen_ratio(1, 2) {
                self.store.commit(transaction)?;
            }
        }
        Ok(())
    }

    fn look(&self) -> store::Result<()> {
        for number in 0..6 {
            read(&self.store, ["a", "b"][number % 2])?;
        }
        Ok(())
    }

    fn clean(&self) -> store::Result<()> {
        for _ in 0..3 {
            self.store.seal_open_zones()?;
            self.store.clean_one()?;
            self.store.flush()?;
        }
        self.store.clean_start()
    }

    /// Runs each item of `work` in a thread of its own; only a power cut excuses an error.
    fn run(&self, work: &[Work]) {
        let start = |work: Work| {
            let machine = self.clone();
            spawn(move || {
                if let Err(error) = work(&machine) {
                    assert!(machine.drive.is_cut(), "{error}");
                }
            })
        };
        let threads: Vec<_> = work.iter().map(|work| start(*work)).collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
    }

    fn check(store: &Store, told: &BTreeMap<String, [Option<u32>; 2]>) {
        let health = store.health().unwrap();
        assert!(health.is_healthy(), "{health:?}");
        for (name, may) in told {
            let found = read(store, name).unwrap();
            assert!(may.contains(&found), "{name}: {found:?}, not {may:?}");
        }
        let report = store.fsck(true, &mut |_, _| {}).unwrap();
        assert!(report.is_clean(), "{:#?}", report.details);
    }
}

type Work = fn(&Machine) -> store::Result<()>;

const TURNING_OVER: [Work; 4] = [
    |machine| machine.turn_over("a", 1),
    |machine| machine.turn_over("b", 11),
    Machine::look,
    Machine::clean,
];
const COPYING: [Work; 3] = [Machine::overwrite, Machine::copy, Machine::clean];

fn get_on(work: &'static [Work]) {
    explore(100, 3_000_000, move || {
        let machine = Machine::new();
        machine.run(work);
        let told = machine.told.lock().unwrap().clone();
        Machine::check(&machine.store, &told);
        machine.store.unmount().unwrap();
        let store = mount(machine.drive.clone(), false);
        Machine::check(&store, &told);
        read(&store, "copy").unwrap();
    });
}

/// One thread overwrites an object and cleans, so that data comes to lie where old data was, while two threads read the
/// object by way of the data cache. No reader gets an older version than the one acknowledged before its read.
#[test]
fn what_is_kept_of_a_zone_is_not_read_after_its_reset() {
    explore(100, 3_000_000, || {
        let drive: Arc<dyn ZonedDevice> = Arc::new(PowerCut::new(geometry()).unwrap());
        let store = made(&drive, false, 1 << 20);
        let told = Arc::new(AtomicU32::new(0));
        let whole = |version: u32| version.to_le_bytes().repeat(16 << 10);
        put_bytes(&store, "o", &whole(0)).unwrap();
        let (writes, tells) = (store.clone(), told.clone());
        let writer = spawn(move || {
            for version in 1..8 {
                let mut writer = writes.writer(None).unwrap();
                writer.write(&whole(version)).unwrap();
                let mut transaction = Transaction::new();
                transaction.write("c", "o", 0, writer.finish().unwrap());
                writes.commit(transaction).unwrap();
                tells.store(version, Ordering::SeqCst);
                writes.clean_one().unwrap();
            }
        });
        let readers = [(); 2].map(|()| {
            let (store, told) = (store.clone(), told.clone());
            spawn(move || {
                for _ in 0..6 {
                    let least = told.load(Ordering::SeqCst);
                    let found = read_bytes(&store, "o").unwrap().unwrap();
                    let version = u32::from_le_bytes(*found.first_chunk().unwrap());
                    assert!(found == whole(version), "half of version {version}");
                    assert!(version >= least, "version {version} after {least}");
                }
            })
        });
        writer.join().unwrap();
        readers
            .into_iter()
            .for_each(|reader| reader.join().unwrap());
        let found = read_bytes(&store, "o").unwrap().unwrap();
        assert!(found == whole(7));
    });
}

#[test]
fn puts_reads_removals_and_cleaning_get_on() {
    get_on(&TURNING_OVER);
}

#[test]
fn overwrites_clones_and_their_removal_get_on_beside_the_cleaner() {
    get_on(&COPYING);
}

#[test]
fn a_power_cut_at_any_moment_takes_nothing_that_was_acknowledged() {
    explore(100, 3_000_000, || {
        let Machine { drive, store, told } = {
            let machine = Machine::new();
            machine.drive.cut_after(thread_rng().gen_range(1..150));
            let copies = thread_rng().gen_ratio(1, 2);
            machine.run(if copies { &COPYING } else { &TURNING_OVER });
            machine
        };
        // Ends the store's threads; the power may be gone already.
        let _ = store.unmount();
        drop(store);
        drive.cut_after(0);
        let limits = CrashLimits {
            max_states: 2,
            seed: thread_rng().r#gen(),
            ..CrashLimits::default()
        };
        let told = told.lock().unwrap().clone();
        for state in drive.crash_states(limits) {
            let image: MemoryDrive = drive.image(&state);
            Machine::check(&mount(Arc::new(image), false), &told);
        }
    });
}

/// Two puts for both of which there is room: what one of them commits must not count twice meanwhile.
#[test]
fn what_is_free_for_two_puts_is_refused_to_neither() {
    explore(100, 30_000_000, || {
        let large = Geometry {
            zone_size: 1 << 20,
            zone_capacity: 1 << 20,
            ..geometry()
        };
        let drive: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(large).unwrap());
        let store = made(&drive, false, 0);
        let mut count = 0;
        while store.statfs().available_bytes > 2_400_000 {
            put_bytes(&store, &format!("n{count}"), &vec![7; 1_000_000]).unwrap();
            count += 1;
        }
        let each = store.statfs().available_bytes as usize * 2 / 5 / 4096 * 4096;
        let puts = ["a", "b"].map(|name| {
            let store = store.clone();
            spawn(move || put_bytes(&store, name, &vec![7; each]))
        });
        puts.into_iter()
            .for_each(|put| put.join().unwrap().unwrap());
    });
}
