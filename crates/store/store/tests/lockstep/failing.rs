//! The k-th drive command fails, for every k, in every kind of step and in a mount: once, for good, half-way, or
//! because its zone became read-only or offline. Acknowledged commits hold. Refused ones have no effect, or the store
//! fails and the next mount decides.

use super::carry_out::everything;
use super::difference::{check_parts, difference};
use super::kinds::{self, Prepared};
use super::step::Step;
use super::world::World;
use crate::common::{put_in, seed};
use device::MemoryDrive;
use device::wrap::faults::{Fault, Faults, Plan};
use fastrand::Rng;
use std::io;
use std::sync::Arc;
use store::{Attributes, Store, Transaction};
use zone::ZoneCondition;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Way {
    Once,
    ForGood,
    Torn,
    ReadOnly,
    Offline,
}

const WAYS: [Way; 5] = [
    Way::Once,
    Way::ForGood,
    Way::Torn,
    Way::ReadOnly,
    Way::Offline,
];

impl Way {
    fn plan(self, kth: u64) -> Plan {
        let fault = match self {
            Self::Once | Self::ForGood => Fault::Io(io::ErrorKind::Other),
            Self::Torn => Fault::Torn { bytes: 8192 },
            Self::ReadOnly => Fault::Break(ZoneCondition::ReadOnly),
            Self::Offline => Fault::Break(ZoneCondition::Offline),
        };
        Plan {
            command: None,
            zone: None,
            kth,
            for_ever: self == Self::ForGood,
            fault,
        }
    }
}

type Drive = Arc<Faults<MemoryDrive>>;

/// Checks that the store holds one of `may`. In an offline zone, objects may be unreadable, but no object may have
/// other bytes.
fn check(store: &Store, may: &[World], way: Way) -> Result<(), String> {
    let found = match everything(store) {
        Ok(found) => found,
        Err(_) if way == Way::Offline => return check_parts(store, may),
        Err(error) => return Err(error.to_string()),
    };
    if may.contains(&found) {
        return Ok(());
    }
    Err(may
        .iter()
        .map(|may| difference(&found, may))
        .collect::<Vec<_>>()
        .join("; or "))
}

/// Takes steps while the fault is active. Returns the contents that the store may have at the end.
fn take(
    prepared: &Prepared,
    store: &Store,
    drive: &Drive,
    steps: &[Step],
    way: Way,
) -> Result<Vec<World>, String> {
    let (mut may, mut waiting) = (vec![prepared.world.clone()], None);
    for step in steps {
        let last = may[may.len() - 1].clone();
        // A step that depends on one that was refused is left out.
        let Some(next) = kinds::after(&last, step) else {
            continue;
        };
        match kinds::take(store, &last, step) {
            Err(error) if drive.struck() == 0 => return Err(error.to_string()),
            Err(_) if store.failure().is_some() => {
                may.push(next);
                return Ok(may);
            }
            // With every command failing, nothing can be read either.
            Err(_) if way == Way::ForGood => {}
            Err(error) => {
                let now = check(store, &[last], way);
                now.map_err(|e| format!("{step:?} was refused with {error}: {e}"))?;
            }
            Ok(Some(pending)) if !pending.is_durable() => {
                may.push(next);
                waiting = Some(pending);
            }
            Ok(_)
                if waiting
                    .as_ref()
                    .is_some_and(|pending| !pending.is_durable()) =>
            {
                may.push(next);
            }
            Ok(_) => may = vec![next],
        }
    }
    Ok(may)
}

fn goes_on(store: &Store) -> store::Result<()> {
    let mut tx = Transaction::new();
    tx.create_collection("afterwards", Attributes::new());
    store.commit(tx)?;
    put_in(store, "afterwards", "object", &[7; 9000])
}

/// Lets the k-th command fail during the steps and checks the store, also after a mount. False if the steps took fewer
/// commands.
fn fail(prepared: &Prepared, steps: &[Step], way: Way, kth: u64) -> Result<bool, String> {
    let drive: Drive = Arc::new(Faults::new(prepared.image()));
    let store = prepared.mount(drive.clone()).map_err(|e| e.to_string())?;
    drive.add(way.plan(kth));
    let may = take(prepared, &store, &drive, steps, way)?;
    if drive.struck() == 0 {
        return Ok(false);
    }
    drive.clear();
    let failure = store.failure();
    check(&store, &may, way).map_err(|e| format!("{failure:?}: {e}"))?;
    drop(store);
    let words = |what: &str, e: String| format!("after {failure:?}, {what}: {e}");
    let store = match prepared.mount(drive) {
        Ok(store) => store,
        // The offline zone had metadata.
        Err(_) if way == Way::Offline => return Ok(true),
        Err(error) => return Err(words("the mount", error.to_string())),
    };
    check(&store, &may, way).map_err(|e| words("a mount", e))?;
    if matches!(way, Way::Once | Way::ForGood | Way::Torn) {
        let report = store.fsck(true, &mut |_, _| {});
        let report = report.map_err(|e| words("fsck", e.to_string()))?;
        if !report.is_clean() {
            return Err(words("fsck", format!("{:#?}", report.details)));
        }
    }
    goes_on(&store).map_err(|e| words("a put", e.to_string()))?;
    Ok(true)
}

fn prepared() -> [Prepared; 2] {
    [true, false].map(|clean| Prepared::new(seed() * 16 + 5 * u64::from(clean), clean))
}

/// A step of the kind, steps of the cleaner and the database, a random other step, and one of the kind again.
fn steps_of(kind: u8, random: &mut Rng, world: &World) -> Vec<Step> {
    let mut world = world.clone();
    let others = [random.u8(..kinds::KINDS), kind];
    let last = kinds::KINDS - 3..kinds::KINDS;
    let mut steps = Vec::new();
    for kind in [kind].into_iter().chain(last).chain(others) {
        let step = kinds::step_of(random, kind, &world);
        world = kinds::after(&world, &step).unwrap();
        steps.push(step);
    }
    steps
}

#[test]
fn the_kth_command_of_every_kind_of_step_fails() {
    let prepared = prepared();
    let mut failed = 0;
    for kind in 0..kinds::KINDS {
        let mut random = Rng::with_seed(seed() << 32 | u64::from(kind));
        let prepared = &prepared[usize::from(kind) % prepared.len()];
        let steps = steps_of(kind, &mut random, &prepared.world);
        for way in WAYS {
            for kth in 1.. {
                match fail(prepared, &steps, way, kth) {
                    Ok(true) => failed += 1,
                    Ok(false) => break,
                    Err(what) => panic!("{way:?} at {kth} of {steps:?}: {what}"),
                }
            }
        }
    }
    println!("{failed} commands failed");
    assert!(failed > 500, "{failed}");
}

#[test]
fn the_kth_command_of_a_mount_fails() {
    for prepared in prepared() {
        for (way, kth) in WAYS
            .into_iter()
            .flat_map(|way| (1..).map(move |kth| (way, kth)).take(200))
        {
            let drive: Drive = Arc::new(Faults::new(prepared.image()));
            drive.add(way.plan(kth));
            let first = prepared.mount(drive.clone());
            if drive.struck() == 0 {
                continue;
            }
            drive.clear();
            let may = [prepared.world.clone()];
            let first = first.map(|store| check(&store, &may, way).unwrap()).err();
            match prepared.mount(drive) {
                Ok(store) => check(&store, &may, way)
                    .unwrap_or_else(|e| panic!("{way:?} at {kth}, {first:?}: {e}")),
                Err(error) => assert!(way == Way::Offline, "{way:?} at {kth}, {first:?}: {error}"),
            }
        }
    }
}
