//! One seed, one run: puts, changes, removals, cleaning and power cuts on a drive in memory with the small database.
//! The store is compared with a model all the way, and every command to the drive goes into a hash: the same seed gives
//! the same commands. `ZONESTORE_STEPS=n` sets the number of steps, `ZONESTORE_SEED=n` the seed.

use crate::common::*;
use device::changed::{Change, Changed};
use device::trace::{Event, Trace};
use device::{PowerCut, ZonedDevice};
use fastrand::Rng;
use kv_log::KvLog;
use runtime::Runtime;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use store::{MkfsOptions, MountOptions, Store, Transaction};
use zone::{ByteOffset, ZoneResult};

const STEPS: u64 = 10_000;
/// Average number of steps between two power cuts.
const STEPS_PER_CUT: u64 = 200;

type Model = BTreeMap<String, Vec<u8>>;

/// Running hash of all commands to the drive and of all bytes written.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<u64>>);

impl Asked {
    fn add(&self, what: impl Hash) {
        let mut sum = self.0.lock().unwrap();
        let mut hasher = DefaultHasher::new();
        (*sum, what).hash(&mut hasher);
        *sum = hasher.finish();
    }

    fn sum(&self) -> u64 {
        *self.0.lock().unwrap()
    }
}

impl<D: ZonedDevice> Change<D> for Asked {
    fn write(&self, drive: &D, at: ByteOffset, data: &[u8]) -> ZoneResult<()> {
        self.add(data);
        drive.write(at, data)
    }
}

/// Applies a change to a store.
type Work = Box<dyn Fn(&Store) -> store::Result<()>>;

struct Simulation {
    random: Rng,
    runtime: Runtime,
    asked: Asked,
    drive: Arc<Changed<Trace<PowerCut>, Asked>>,
    store: Store,
    model: Model,
    cuts: u64,
}

fn listened(drive: PowerCut, asked: &Asked) -> Arc<Changed<Trace<PowerCut>, Asked>> {
    let heard = asked.clone();
    let hear = move |event: &Event| {
        let error = event.error.as_ref().map(ToString::to_string);
        heard.add((event.command.to_string(), event.at.0, event.length, error));
    };
    Arc::new(Changed {
        drive: Trace::new(drive, Arc::new(hear)),
        change: asked.clone(),
    })
}

fn commit(store: &Store, fill: impl FnOnce(&mut Transaction)) -> store::Result<()> {
    let mut transaction = Transaction::new();
    fill(&mut transaction);
    store.commit(transaction)
}

fn options(runtime: &Runtime) -> MountOptions {
    MountOptions {
        runtime: runtime.clone(),
        background: false,
        ..MountOptions::new(KvLog)
    }
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let (runtime, asked) = (Runtime::seeded(seed), Asked::default());
        let drive = listened(PowerCut::new(geometry(64)).unwrap(), &asked);
        let made = MkfsOptions {
            uuid: runtime.bytes().unwrap(),
            runtime: runtime.clone(),
            ..MkfsOptions::new(KvLog)
        };
        Store::mkfs(drive.clone(), &made).unwrap();
        let store = Store::mount(drive.clone(), options(&runtime)).unwrap();
        create_collection(&store);
        Self {
            random: Rng::with_seed(seed),
            runtime,
            asked,
            drive,
            store,
            model: Model::new(),
            cuts: 0,
        }
    }

    fn power(&self) -> &PowerCut {
        self.drive.drive.inner()
    }

    fn data(&mut self) -> Vec<u8> {
        let size = match self.random.u8(..8) {
            0 => self.random.usize(60_000..300_000),
            1 | 2 => self.random.usize(4_000..30_000),
            _ => self.random.usize(..3_000),
        };
        pattern(self.random.u64(..), size)
    }

    /// Applies a random change to the model, and returns the same change for the store.
    fn change(&mut self, next: &mut Model) -> Work {
        let name = format!("object {}", self.random.u8(..24));
        let old = next.get(&name).cloned();
        match (self.random.u8(..10), old) {
            (0 | 1, Some(mut object)) => {
                let data = self.data();
                let at = self.random.usize(..=object.len());
                let end = at + data.len();
                object.resize(object.len().max(end), 0);
                object[at..end].copy_from_slice(&data);
                next.insert(name.clone(), object);
                Box::new(move |store| {
                    let data = written(store, &data)?;
                    commit(store, |tx| _ = tx.write("c", &name, at as u64, data))
                })
            }
            (2, Some(mut object)) => {
                let size = self.random.usize(..=object.len());
                object.truncate(size);
                next.insert(name.clone(), object);
                Box::new(move |store| commit(store, |tx| _ = tx.truncate("c", &name, size as u64)))
            }
            (3 | 4, Some(_)) => {
                next.remove(&name);
                Box::new(move |store| commit(store, |tx| _ = tx.remove("c", &name)))
            }
            (5, Some(object)) => {
                let to = format!("object {}", self.random.u8(24..28));
                next.remove(&name);
                next.insert(to.clone(), object);
                Box::new(move |store| commit(store, |tx| _ = tx.rename(("c", &name), ("c", &to))))
            }
            _ => {
                let data = self.data();
                next.insert(name.clone(), data.clone());
                Box::new(move |store| put(store, &name, &data))
            }
        }
    }

    fn step(&mut self) {
        if self.random.u64(..STEPS_PER_CUT) == 0 {
            self.cuts += 1;
            let commands = self.random.u64(..60);
            self.power().cut_after(commands);
        }
        let mut next = self.model.clone();
        let done = match self.random.u8(..20) {
            0 => self.store.flush(),
            1 => self.store.seal_open_zones(),
            2 | 3 => self.store.clean_one().map(drop),
            4 | 5 => {
                let names: Vec<_> = self.model.keys().cloned().collect();
                match self.random.choice(&names) {
                    Some(name) => read(&self.store, name)
                        .map(|found| assert!(found == self.model[name], "{name}")),
                    None => Ok(()),
                }
            }
            _ => self.change(&mut next)(&self.store),
        };
        match done {
            Ok(()) => self.model = next,
            Err(error) => {
                assert!(self.power().is_cut(), "{error}");
                self.restart(next);
            }
        }
    }

    /// Restarts the drive after a power cut, in a random state that the cut may leave.
    fn restart(&mut self, next: Model) {
        let kept = self.random.u64(..);
        let state = self.power().random_crash_state(kept);
        self.drive = listened(self.power().restart(&state), &self.asked);
        self.store = Store::mount(self.drive.clone(), options(&self.runtime)).unwrap();
        let found = contents(&self.store);
        assert!(found == self.model || found == next);
        self.model = found;
        if self.cuts.is_multiple_of(8) {
            assert_clean(&self.store);
        }
    }
}

/// The hash of all commands, and the number of power cuts.
fn run(seed: u64, steps: u64) -> (u64, u64) {
    let mut simulation = Simulation::new(seed);
    for _ in 0..steps {
        simulation.step();
    }
    (simulation.asked.sum(), simulation.cuts)
}

#[test]
fn one_seed_is_one_run() {
    let given = std::env::var("ZONESTORE_STEPS").ok();
    let steps = given.map_or(STEPS, |steps| steps.parse().unwrap());
    let seed = seed();
    let (first, cuts) = run(seed, steps);
    println!("seed {seed}: {steps} steps, {cuts} power cuts, commands {first:016x}");
    assert!(cuts >= steps / STEPS_PER_CUT / 2);
    assert_eq!(run(seed, steps), (first, cuts));
    assert_ne!(run(seed + 1, 100).0, run(seed + 2, 100).0);
    assert_ne!(run(seed, 100).0, run(seed + 1, 100).0);
}
