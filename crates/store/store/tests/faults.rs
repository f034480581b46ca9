//! Zones that cannot be read, written or reset any more: what is in them is named, everything else
//! goes on.

// A failed unwrap is a failed test.
#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use device::wrap::faults::{Fault, Faults, Plan};
use device::{MemoryDrive, ZonedDevice};
use std::io;
use std::sync::Arc;
use store::{Store, Transaction};
use zone::{ZoneCommand, ZoneCondition, ZoneId};

type Drive = Arc<Faults<MemoryDrive>>;

fn fresh(zones: u32) -> (Drive, Store) {
    let drive = Arc::new(Faults::new(MemoryDrive::new(geometry(zones)).unwrap()));
    let device: Arc<dyn ZonedDevice> = drive.clone();
    mkfs(&device);
    let store = mount(&device);
    create_collection(&store);
    (drive, store)
}

fn remove(store: &Store, name: &str) {
    let mut tx = Transaction::new();
    tx.remove("c", name);
    store.commit(tx).unwrap();
}

const OBJECT: usize = 300_000;

/// Fills the drive and removes every other object, so that each zone is worth cleaning and no other
/// one is free; answers what was kept.
fn half_dead(store: &Store) -> Vec<u64> {
    let objects = store.statfs().available_bytes / OBJECT as u64 * 15 / 16;
    for i in 0..objects {
        put(store, &i.to_string(), &pattern(i, OBJECT)).unwrap();
    }
    for i in (0..objects).step_by(2) {
        remove(store, &i.to_string());
    }
    (1..objects).step_by(2).collect()
}

/// Overwrites a few objects until the drive has been filled several times over.
fn write_on(store: &Store, bytes: u64) {
    let mut written = 0;
    for i in 0.. {
        if written >= bytes {
            return;
        }
        put(store, &format!("on{}", i % 8), &pattern(i, OBJECT)).unwrap();
        written += OBJECT as u64;
    }
}

/// The zone that the cleaner would choose.
fn next_victim(store: &Store) -> ZoneId {
    let zones = store.zones().into_iter();
    let full = zones.filter(|z| z.live_bytes > 0 && z.written_bytes == 1 << 20);
    full.min_by_key(|z| z.live_bytes).unwrap().zone
}

#[test]
fn a_zone_that_cannot_be_read_stops_nothing_else() {
    for fault in [
        Fault::Io(io::ErrorKind::Other),
        Fault::Break(ZoneCondition::Offline),
    ] {
        let (drive, store) = fresh(96);
        let kept = half_dead(&store);
        let bad = next_victim(&store);
        drive.add(Plan::from(ZoneCommand::Read, 1, fault).in_zone(bad));
        let capacity = store.statfs().capacity_bytes;
        // All zones have to be cleaned for this.
        let more = store.statfs().available_bytes / OBJECT as u64 * 5 / 8;
        for i in 0..more {
            put(&store, &format!("more{i}"), &pattern(i, OBJECT)).unwrap();
        }
        write_on(&store, capacity / 2);
        let space = store.statfs();
        assert!(space.set_aside_bytes > 0, "{space:?}");
        assert!(space.capacity_bytes < capacity);
        let lost = kept
            .iter()
            .filter(|i| read(&store, &i.to_string()).is_err());
        let lost: Vec<_> = lost.collect();
        assert!(!lost.is_empty() && lost.len() < kept.len(), "{lost:?}");
        // Gone with the objects in it, the zone is no loss any more.
        for i in lost {
            remove(&store, &i.to_string());
        }
        while store.clean_one().unwrap() {}
        assert_eq!(store.statfs().set_aside_bytes, 0);
    }
}

/// Numbers that are the same every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end.max(1)
    }
}

/// What may be read under a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Content(Option<(u64, usize)>);

/// A store and what it should hold.
struct History {
    drive: Drive,
    device: Arc<dyn ZonedDevice>,
    store: Store,
    numbers: Numbers,
    /// Several where a commit has failed: which one counts, the next mount says.
    names: std::collections::BTreeMap<String, Vec<Content>>,
    next: u64,
    slow: Option<(store::ObjectWriter, u64, usize)>,
    last_error: String,
}

/// How many names are written and removed again; what fills the drive may have more.
const NAMES: u64 = 60;

impl History {
    fn new(seed: u64) -> Self {
        let (drive, store) = fresh(48);
        let mut history = Self {
            device: drive.clone(),
            drive,
            store,
            numbers: Numbers((seed + (common::seed() << 32)) * 2 + 1),
            names: std::collections::BTreeMap::new(),
            next: seed << 32,
            slow: None,
            last_error: String::new(),
        };
        let full = history.store.statfs().capacity_bytes / 8;
        // Each name once: how much is live after many random overwrites is a matter of luck.
        for n in 0.. {
            if history.store.statfs().available_bytes <= full || !history.put(format!("o{n}")) {
                break;
            }
        }
        history
    }

    /// Enters what a commit did to a name; false if nothing can be written any more.
    fn enter(&mut self, name: &str, new: Content, done: store::Result<()>) {
        let known = self.names.entry(name.to_owned());
        let known = known.or_insert_with(|| vec![Content(None)]);
        match done {
            Ok(()) => *known = vec![new],
            Err(store::Error::Failed { .. }) => known.push(new),
            Err(_) => {}
        }
    }

    fn name(&mut self) -> String {
        format!("o{}", self.numbers.below(NAMES))
    }

    fn put_any(&mut self) -> bool {
        let name = self.name();
        self.put(name)
    }

    fn put(&mut self, name: String) -> bool {
        let length = self.numbers.below(500_000) as usize;
        self.next += 1;
        let seed = self.next;
        let done = put(&self.store, &name, &pattern(seed, length));
        let is_done = done.is_ok();
        if let Err(error) = &done {
            self.last_error = error.to_string();
        }
        self.enter(&name, Content(Some((seed, length))), done);
        is_done
    }

    fn step(&mut self) {
        match self.numbers.below(20) {
            0..9 => drop(self.put_any()),
            9..12 => {
                let name = self.name();
                let mut tx = Transaction::new();
                tx.remove("c", &name);
                let done = self.store.commit(tx);
                let gone = matches!(&done, Err(store::Error::NoObject { .. }));
                self.enter(&name, Content(None), if gone { Ok(()) } else { done });
            }
            12..15 => {
                let name = self.name();
                self.read(&name, true);
            }
            15..17 => drop(self.store.clean_one()),
            17..19 => self.upload(),
            _ => drop(self.store.seal_open_zones()),
        }
    }

    /// A slow upload, a piece at a time.
    fn upload(&mut self) {
        let Some((writer, seed, length)) = &mut self.slow else {
            self.next += 1;
            let seed = self.next;
            let writer = self.store.writer(None).ok();
            self.slow = writer.map(|writer| (writer, seed, 0));
            return;
        };
        let piece = 300_000;
        let data = pattern(*seed, *length + piece);
        if writer.write(&data[*length..]).is_err() {
            self.slow = None;
            return;
        }
        *length += piece;
        if *length < 6 * piece {
            return;
        }
        let Some((writer, seed, length)) = self.slow.take() else {
            return;
        };
        let name = self.name();
        let commit = writer.finish().and_then(|data| {
            let mut tx = Transaction::new();
            tx.put("c", &name, data, store::Attributes::new());
            self.store.commit(tx)
        });
        self.enter(&name, Content(Some((seed, length))), commit);
    }

    /// Whatever is read is what was stored; an error is allowed as long as something fails.
    fn read(&self, name: &str, may_fail: bool) {
        let found = match read(&self.store, name) {
            Ok(found) => Some(found),
            Err(store::Error::NoObject { .. }) => None,
            Err(error) => {
                assert!(may_fail, "{name}: {error}");
                return;
            }
        };
        let allowed = self.names.get(name).cloned();
        let allowed = allowed.unwrap_or_else(|| vec![Content(None)]);
        let fits = |content: &Content| match (content.0, &found) {
            (None, None) => true,
            (Some((seed, length)), Some(found)) => *found == pattern(seed, length),
            _ => false,
        };
        assert!(allowed.iter().any(fits), "{name}");
    }

    fn read_all(&self, lost: &[String]) {
        for name in self.names.keys() {
            self.read(name, lost.contains(&format!("c/{name}")));
        }
    }

    /// Nothing fails any more, unless in zones that the store knows of: what was acknowledged is there,
    /// and writes go on, after a mount if the store says that there has to be one.
    fn settle(mut self) {
        self.drive.clear();
        self.slow = None;
        let lost = self.store.health().unwrap().object_names;
        self.read_all(&lost);
        if self.store.failure().is_none() {
            let space = self.store.statfs();
            let mut failed = 0;
            while self.store.statfs().available_bytes > 2 << 20 && failed < 3 {
                failed += u32::from(!self.put_any());
                self.next += 1;
                if self.next.is_multiple_of(8) {
                    break;
                }
            }
            assert!(failed < 3, "{}: {space:?}", self.last_error);
        }
        let Self {
            device,
            store,
            names,
            ..
        } = self;
        drop(store);
        let store = mount(&device);
        let health = store.health().unwrap();
        let again = Self {
            store,
            device,
            names,
            ..self
        };
        again.read_all(&[lost, health.object_names].concat());
        if health.zones.is_empty() {
            assert_clean(&again.store);
        }
    }
}

/// The histories alone, so that what the others show is of the faults.
#[test]
fn nothing_fails_without_a_fault() {
    for seed in 1..4 {
        let mut history = History::new(seed);
        for _ in 0..150 {
            history.step();
        }
        assert!(history.store.failure().is_none());
        history.settle();
    }
}

#[test]
fn any_command_may_fail_now_and_then() {
    let commands = [
        ZoneCommand::Read,
        ZoneCommand::Write,
        ZoneCommand::Reset,
        ZoneCommand::Finish,
        ZoneCommand::Flush,
        ZoneCommand::Report,
    ];
    for (seed, command) in (1..).zip(commands) {
        for every in [3, 40] {
            let mut history = History::new(seed * 1000 + every);
            for times in 1..=40 {
                let fault = Fault::Io(io::ErrorKind::Other);
                history.drive.add(Plan::at(command, times * every, fault));
            }
            for _ in 0..150 {
                history.step();
            }
            println!(
                "{command} every {every}: {} times, {:?}",
                history.drive.struck(),
                history.store.failure()
            );
            history.settle();
        }
    }
}

/// Zones with object data become read-only or offline, or cannot be read, written or reset for good.
#[test]
fn zones_may_fail_for_good() {
    let io = || Fault::Io(io::ErrorKind::Other);
    let ways: [(Option<ZoneCommand>, Fault); 6] = [
        (None, Fault::Break(ZoneCondition::ReadOnly)),
        (None, Fault::Break(ZoneCondition::Offline)),
        (Some(ZoneCommand::Read), io()),
        (Some(ZoneCommand::Write), io()),
        (Some(ZoneCommand::Reset), io()),
        (
            Some(ZoneCommand::Write),
            Fault::Break(ZoneCondition::ReadOnly),
        ),
    ];
    for (way, (command, fault)) in ways.into_iter().enumerate() {
        for seed in 1..3 {
            let mut history = History::new(way as u64 * 100 + seed);
            for step in 0..150 {
                if step % 40 == 10 {
                    let zones = history.store.zones();
                    let index = history.numbers.below(zones.len() as u64) as usize;
                    history.drive.add(Plan {
                        command,
                        ..Plan::from(ZoneCommand::Read, 1, fault.clone()).in_zone(zones[index].zone)
                    });
                }
                history.step();
            }
            assert!(history.store.failure().is_none());
            println!("{command:?} {fault:?}: {:?}", history.store.statfs());
            history.settle();
        }
    }
}
