//! Tests of how zones are handed out: logs, a manifest and SSTs are written at once, on a drive with few active zones,
//! where another owner uses its whole share. No writer is refused a zone, no zone has two users, no command exceeds the
//! drive's limit, and a power cut loses nothing that was synced.

use super::drive::{Interleaved, formatted};
use crate::{BlueFs, Error, Lifetime, MountOptions, SharedWriter, Writer};
use device::power_cut::CrashLimits;
use device::{PowerCut, ZonedDevice};
use runtime::Runtime;
use runtime::schedules::{Rng, explore, spawn, thread_rng};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use zone::ZoneId;
use zone_alloc::{Owner, Purpose, ZonePool};

type Result = std::result::Result<(), Error>;

pub(super) fn mount(device: Arc<dyn ZonedDevice>) -> BlueFs {
    let g = device.geometry().clone();
    let report = device.report(ZoneId(0), g.zone_count).unwrap();
    let pool = Arc::new(ZonePool::new(g, &report));
    let options = MountOptions {
        runtime: Runtime::seeded(0),
        ..MountOptions::default()
    };
    BlueFs::mount(device, pool, options).unwrap()
}

/// The bytes of one append: less than a block, so that a log's record fits into one.
pub(super) fn part(name: &str, number: usize) -> Vec<u8> {
    let mut bytes = format!("{name} {number} ").into_bytes();
    bytes.resize(400, number as u8);
    bytes
}

/// A file system whose users note what has been synced.
#[derive(Clone)]
struct Machine {
    drive: Arc<Interleaved<PowerCut>>,
    fs: BlueFs,
    /// How many parts of each file are durable.
    durable: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Machine {
    fn new(zone_count: u32, max_active_zones: u32) -> Self {
        let drive = formatted(zone_count, max_active_zones);
        let fs = mount(drive.clone());
        // The store keeps as many zones active as it may.
        for _ in 0..fs.pool().active_quota(Owner::Store).unwrap() {
            let zone = fs.pool().take(Purpose::Data).unwrap();
            drive
                .write(drive.geometry().start(zone), &[1; 512])
                .unwrap();
        }
        drive.flush().unwrap();
        Self {
            drive,
            fs,
            durable: Arc::default(),
        }
    }

    /// Appends `parts` to a file, synced one by one or now and then.
    fn append(&self, writer: &mut Writer, name: &str, parts: usize, each: bool) -> Result {
        for number in 0..parts {
            writer.append(&part(name, number))?;
            if each || number + 1 == parts || thread_rng().gen_ratio(1, 16) {
                writer.sync()?;
                let mut durable = self.durable.lock().unwrap();
                durable.insert(name.to_owned(), number + 1);
            }
        }
        Ok(())
    }

    fn manifest(&self) -> Result {
        let name = "/MANIFEST-000001";
        self.append(&mut self.fs.create(name)?, name, 16, true)
    }

    /// Writes files that replace each other. An old one is deleted before its successor is written, or after.
    fn turn_over(&self, family: u32, ending: &str, lifetime: Lifetime, most: usize) -> Result {
        let mut old: Option<String> = None;
        for file in 0..4 {
            let name = format!("/{family}{file:05}.{ending}");
            let mut writer = self.fs.create(&name)?;
            writer.set_lifetime(lifetime);
            let parts = thread_rng().gen_range(1..most);
            self.append(&mut writer, &name, parts, ending == "log")?;
            writer.close()?;
            let name = if thread_rng().gen_bool(0.5) {
                old.replace(name)
            } else {
                self.delete(old.take())?;
                Some(name)
            };
            self.delete(name)?;
        }
        Ok(())
    }

    fn delete(&self, name: Option<String>) -> Result {
        let Some(name) = name else { return Ok(()) };
        self.durable.lock().unwrap().remove(&name);
        self.fs.delete(&name)?;
        if thread_rng().gen_bool(0.5) {
            self.fs.sync_metadata()?;
        }
        Ok(())
    }

    /// Takes zones for data, and checks that no other owner uses them meanwhile.
    fn take_for_data(&self) -> Result {
        for _ in 0..6 {
            let Some(zone) = self.fs.pool().take(Purpose::Data) else {
                continue;
            };
            for _ in 0..4 {
                let found = self.drive.report_zone(zone)?;
                assert_eq!(found.write_pointer, 0, "{zone} is written to by another");
                assert_eq!(self.fs.pool().owner(zone), Some(Owner::Store));
            }
            self.fs.pool().give_back(zone);
        }
        Ok(())
    }

    /// Runs all of this at once.
    fn run(&self) {
        let start = |work: fn(&Self) -> Result| {
            let machine = self.clone();
            spawn(move || {
                if let Err(error) = work(&machine) {
                    assert!(machine.drive.inner.is_cut(), "{error}");
                }
            })
        };
        let threads = [
            start(|m| m.turn_over(1, "log", Lifetime::Unknown, 12)),
            start(Self::manifest),
            start(|m| m.turn_over(2, "sst", Lifetime::Medium, 40)),
            start(|m| m.turn_over(3, "sst", Lifetime::Long, 30)),
            start(Self::take_for_data),
        ];
        threads.into_iter().for_each(|t| t.join().unwrap());
    }

    /// Cuts the power, unless it has been cut, and checks that durable data is still there.
    fn survives(self) {
        let Self { drive, fs, durable } = self;
        drop(fs);
        drive.inner.cut_after(0);
        let limits = CrashLimits {
            max_states: 3,
            seed: thread_rng().r#gen(),
            ..CrashLimits::default()
        };
        for state in drive.inner.crash_states(limits) {
            let fs = mount(Arc::new(drive.inner.image(&state)));
            for (name, parts) in &*durable.lock().unwrap() {
                let reader = fs.open(name).unwrap();
                let mut found = vec![0; reader.size() as usize];
                reader.read_at(0, &mut found).unwrap();
                let written = (0..*parts).flat_map(|number| part(name, number));
                assert!(found.starts_with(&written.collect::<Vec<_>>()), "{name}");
            }
            let report = fs.check(true).unwrap();
            assert!(report.is_clean(), "{:?}", report.details);
        }
    }
}

/// Two zones besides superblocks and journal: logs and manifests share one, SSTs the other.
#[test]
fn all_get_on_with_two_zones() {
    explore(100, 1_000_000, || {
        let machine = Machine::new(40, 6);
        machine.run();
        machine.survives();
    });
}

/// Three zones: one each for log, manifest and SSTs.
#[test]
fn all_get_on_with_three_zones() {
    explore(100, 1_000_000, || {
        let machine = Machine::new(40, 7);
        machine.run();
        machine.survives();
    });
}

#[test]
fn all_get_on_with_few_free_zones() {
    explore(100, 1_000_000, || {
        let machine = Machine::new(21, 8);
        machine.run();
        machine.survives();
    });
}

#[test]
fn a_power_cut_at_any_moment_takes_nothing_that_was_synced() {
    explore(200, 1_000_000, || {
        let machine = Machine::new(40, 7);
        let commands = thread_rng().gen_range(1..250);
        machine.drive.inner.cut_after(commands);
        machine.run();
        machine.survives();
    });
}

/// A sync must not rely on a flush alone if another handle has written its bytes out but not registered them yet.
#[test]
fn a_sync_covers_what_another_handle_of_the_file_wrote_out() {
    explore(2000, 100_000, || {
        let machine = Machine::new(30, 8);
        let name = "/1.sst";
        let mut first = machine.fs.create(name).unwrap();
        first.append(&part(name, 0)).unwrap();
        first.sync().unwrap();
        let mut second = machine.fs.reopen(name).unwrap();
        second.append(&part(name, 1)).unwrap();
        let other = spawn(move || first.sync());
        second.sync().unwrap();
        machine.durable.lock().unwrap().insert(name.to_owned(), 2);
        machine.drive.inner.cut_after(0);
        // The power may have been cut during it.
        let _late = other.join().unwrap();
        drop(second);
        machine.survives();
    });
}

/// RocksDB syncs a log from another thread than the one that appends to it: what had been appended when a
/// sync began is there after a power cut at any later moment.
#[test]
fn a_sync_covers_what_was_appended_before_it_beside_other_appends() {
    explore(500, 200_000, || {
        let machine = Machine::new(30, 8);
        let name = "/000001.log";
        machine.fs.create(name).unwrap().sync().unwrap();
        let log = Arc::new(SharedWriter::new(machine.fs.reopen(name).unwrap()));
        let appended = Arc::new(Mutex::new(0));
        machine.drive.inner.cut_after(thread_rng().gen_range(1..40));
        let appending = {
            let (log, appended) = (log.clone(), appended.clone());
            move || -> Result {
                for number in 0..24 {
                    log.lock().append(&part(name, number))?;
                    *appended.lock().unwrap() = number + 1;
                }
                Ok(())
            }
        };
        let syncing = {
            let (machine, log) = (machine.clone(), log.clone());
            move || -> Result {
                for _ in 0..3 {
                    let before = *appended.lock().unwrap();
                    log.sync()?;
                    let mut durable = machine.durable.lock().unwrap();
                    let durable = durable.entry(name.to_owned()).or_default();
                    *durable = before.max(*durable);
                }
                Ok(())
            }
        };
        let work = [spawn(appending), spawn(syncing.clone()), spawn(syncing)];
        for thread in work {
            if let Err(error) = thread.join().unwrap() {
                assert!(machine.drive.inner.is_cut(), "{error}");
            }
        }
        drop(log);
        machine.survives();
    });
}

/// If few zones may be active, moved records of a log lie between those that its writer appends.
#[test]
fn a_log_goes_on_beside_what_is_moved_of_it() {
    explore(400, 1_000_000, || {
        let machine = Machine::new(40, 5);
        machine
            .drive
            .inner
            .cut_after(thread_rng().gen_range(30..400));
        let writing = {
            let machine = machine.clone();
            move || -> Result {
                let name = "/000001.log";
                machine.append(&mut machine.fs.create(name)?, name, 60, true)
            }
        };
        let moving = {
            let fs = machine.fs.clone();
            move || -> Result {
                for _ in 0..8 {
                    fs.close_sequential_zones()?;
                    match fs.leave_sequential_zone() {
                        // The only zone that the moved records may share is full.
                        Ok(_) | Err(Error::NoSpace { .. }) => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(())
            }
        };
        for thread in [spawn(writing), spawn(moving)] {
            if let Err(error) = thread.join().unwrap() {
                assert!(machine.drive.inner.is_cut(), "{error}");
            }
        }
        machine.survives();
    });
}

/// Two threads open a log for appending that does not exist yet: neither replaces what the other has synced.
#[test]
fn a_log_that_two_threads_reopen_is_created_once() {
    explore(100, 3_000_000, || {
        let machine = Machine::new(40, 6);
        let threads = [b"a", b"b"].map(|text| {
            let fs = machine.fs.clone();
            spawn(move || {
                let mut log = fs.reopen("/1.log").unwrap();
                log.append(text).unwrap();
                log.sync().unwrap();
            })
        });
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        assert_eq!(machine.fs.metadata("/1.log").unwrap().size, 2);
    });
}
