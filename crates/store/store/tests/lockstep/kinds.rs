//! Every kind of step that changes a store, by itself or in pairs, on a prepared store that holds a little of
//! everything.

use super::call::{BY_NAME, COLLECTIONS, Call, OBJECTS, collection};
use super::carry_out::add;
use super::deal;
use super::machine::Machine;
use super::plan::{Drive, On, Plan};
use super::step::Step;
use super::world::World;
use device::power_cut::{CrashLimits, PowerCut};
use device::{MemoryDrive, ZonedDevice};
use fastrand::Rng;
use std::sync::Arc;
use store::{ChecksumKind, Pending, Result, Store, Transaction};

/// One kind for each [`Call`], and three for the cleaner and the database.
pub const KINDS: u8 = deal::KINDS + 3;

/// A drive with a store that holds a little of everything, and the model of it.
pub struct Prepared {
    pub plan: Plan,
    drive: Arc<PowerCut>,
    pub world: World,
    /// The model before the last commit.
    pub earlier: World,
}

impl Prepared {
    /// Takes some random steps, then stops the store cleanly or not.
    pub fn new(seed: u64, is_clean: bool) -> Self {
        let plan = Plan {
            on: On::PowerCut,
            is_small: true,
            seed,
        };
        let mut machine = Machine::new(plan);
        let mut random = Rng::with_seed(seed);
        for _ in 0..200 {
            match deal::step(&mut random, &machine.world, 300_000) {
                Step::Trouble(_) => {}
                // Without checksums, damaged or stale bytes cannot be told from right ones.
                Step::Restart { number, .. }
                    if plan.options(number).data.checksum == ChecksumKind::None => {}
                step => machine.step(&step).unwrap(),
            }
        }
        let room = room_for_collections(&machine.world);
        let mut commit = |calls| {
            let step = Step::Commit {
                calls,
                readable: false,
            };
            machine.step(&step).unwrap();
            machine.world.clone()
        };
        let earlier = commit(room);
        commit(vec![mark(&earlier, 2)]);
        let (drive, world) = machine.stop(is_clean);
        let Drive::PowerCut(drive) = drive else {
            unreachable!("as planned")
        };
        drive.flush().unwrap();
        Self {
            plan,
            drive,
            world,
            earlier,
        }
    }

    fn all(&self) -> device::power_cut::CrashState {
        let one = CrashLimits {
            max_states: 1,
            ..CrashLimits::default()
        };
        self.drive.crash_states(one).remove(0)
    }

    pub fn copy(&self) -> Arc<PowerCut> {
        Arc::new(self.drive.restart(&self.all()))
    }

    pub fn image(&self) -> MemoryDrive {
        self.drive.image(&self.all())
    }

    pub fn mount(&self, device: Arc<dyn ZonedDevice>) -> Result<Store> {
        Store::mount(device, self.plan.options(0))
    }
}

/// A call that certainly changes something.
fn mark(world: &World, size: u16) -> Call {
    let there = (0..).find(|number| world.0.contains_key(collection(*number)));
    Call::SetCollectionAttributes(there.unwrap(), vec![(0, size)])
}

/// Calls that remove all but one of the collections in order of names, and the last two hashed ones, so that others can
/// be created.
fn room_for_collections(world: &World) -> Vec<Call> {
    let mut calls = vec![mark(world, 1)];
    let last = COLLECTIONS.len() as u8;
    for within in (1..BY_NAME).chain(last - 2..last) {
        if world.0.contains_key(collection(within)) {
            let names = (0..OBJECTS).map(|name| (within, name));
            let there = names.filter(|name| matches!(world.find(*name), Ok(Some(_))));
            calls.extend(there.map(Call::Remove));
            calls.push(Call::RemoveCollection(within));
        }
    }
    calls
}

/// A random step of a kind that succeeds on a store that holds `world`.
pub fn step_of(random: &mut Rng, kind: u8, world: &World) -> Step {
    match kind.checked_sub(deal::KINDS) {
        None => Step::Commit {
            calls: transaction_of(random, kind, world),
            readable: random.u8(..4) == 0,
        },
        Some(0) => Step::Clean,
        Some(1) => Step::Flush,
        Some(_) => Step::Tend,
    }
}

/// Calls that succeed, the last of them of the given kind; others come before it only if it is not possible otherwise.
fn transaction_of(random: &mut Rng, kind: u8, world: &World) -> Vec<Call> {
    for attempt in 0..20_000 {
        let (mut after, mut calls) = (world.clone(), Vec::new());
        for _ in 0..attempt / 1000 {
            let before = deal::any_call(random, &after);
            let mut next = after.clone();
            if next.carry_out(&before).is_ok() {
                (after, _) = (next, calls.push(before));
            }
        }
        let call = deal::call(random, kind, &after);
        if after.carry_out(&call).is_ok() {
            calls.push(call);
            return calls;
        }
    }
    panic!("no call of kind {kind} is possible")
}

/// The model after the step; `None` if the step has to be refused.
pub fn after(world: &World, step: &Step) -> Option<World> {
    let mut next = world.clone();
    if let Step::Commit { calls, .. } = step {
        calls
            .iter()
            .try_for_each(|call| next.carry_out(call))
            .ok()?;
    }
    Some(next)
}

/// Takes the step on a store that holds `world`.
pub fn take(store: &Store, world: &World, step: &Step) -> Result<Option<Pending>> {
    match step {
        Step::Commit { calls, readable } => {
            let (mut tx, mut next) = (Transaction::new(), world.clone());
            for call in calls {
                add(store, &mut tx, &next, call)?;
                next.carry_out(call).unwrap();
            }
            if *readable {
                return store.commit_readable(tx).map(Some);
            }
            store.commit(tx)?;
        }
        Step::Clean => {
            store.seal_open_zones()?;
            store.clean_one()?;
            store.clean_one()?;
        }
        Step::Flush => store.flush()?,
        Step::Tend => _ = store.tend()?,
        other => unreachable!("{other:?} is of no kind"),
    }
    Ok(None)
}
