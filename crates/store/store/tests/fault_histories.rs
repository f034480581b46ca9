//! Histories of random operations while commands and zones fail: a read returns what was stored or an error, and all
//! acknowledged objects are there once nothing fails any more.

use crate::common;
use crate::common::*;
use device::ZonedDevice;
use device::wrap::faults::{Fault, Plan};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use store::{Store, Transaction};
use zone::{ZoneCommand, ZoneCondition};

/// A xorshift generator: the same seed gives the same history.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end.max(1)
    }
}

/// An object's pattern as seed and length; `None` if the object is absent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Content(Option<(u64, usize)>);

/// A store under test and what it should hold.
struct History {
    drive: FailingDrive,
    device: Arc<dyn ZonedDevice>,
    store: Store,
    numbers: Numbers,
    /// Contents that each name may have: several after a failed commit, until the next mount decides which one holds.
    names: BTreeMap<String, Vec<Content>>,
    next: u64,
    slow: Option<(store::ObjectWriter, u64, usize)>,
    last_error: String,
}

/// Number of names that are written and removed again; filling the drive in `new` may use more.
const NAMES: u64 = 60;

impl History {
    fn new(seed: u64) -> Self {
        let (drive, store) = on_failing_drive(48);
        let mut history = Self {
            device: drive.clone(),
            drive,
            store,
            numbers: Numbers((seed + (common::seed() << 32)) * 2 + 1),
            names: BTreeMap::new(),
            next: seed << 32,
            slow: None,
            last_error: String::new(),
        };
        let full = history.store.statfs().capacity_bytes / 8;
        // Fills the drive with each name once: after random overwrites, the amount of live data would depend on the
        // seed.
        for n in 0.. {
            if history.store.statfs().available_bytes <= full || !history.put(format!("o{n}")) {
                break;
            }
        }
        history
    }

    /// Notes the outcome of a commit for a name. After [`store::Error::Failed`], the old and the new content are both
    /// allowed.
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

    /// Continues a slow upload by one piece, or begins one; commits it after six pieces.
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

    /// Asserts that an object is absent or has the bytes that were stored. With `may_fail`, an error is accepted.
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

    /// Clears all faults and asserts that every acknowledged object can be read, unless the store reports it as lost,
    /// and that puts succeed. Then mounts again, as a failed store demands, and asserts the same.
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

/// Runs the histories without faults, so that failures of the other tests are due to the faults.
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

/// Zones with object data become read-only or offline, or their reads, writes or resets fail for good.
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
