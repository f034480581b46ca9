//! A store beside its model. Every answer of the store has to be the model's too. An error of the drive may leave
//! several outcomes open; the next mount has to show one of them.

use super::call;
use super::call::{Data, Target};
use super::carry_out::{add, everything, find};
use super::difference::{difference, unlike};
use super::plan::{Drive, Plan};
use super::step::Step;
use super::world::{Object, World};
use store::{Attributes, Error, ObjectReader, ObjectWriter, Pending, Store, Transaction};

/// Description of a failure.
pub type Wrong = String;

pub struct Machine {
    plan: Plan,
    drive: Drive,
    store: Option<Store>,
    pub world: World,
    /// Commits that were not durable when last asked, in order, each with the store's contents after it. `durable` is
    /// the contents before all of them, which no restart may take back.
    waiting: Vec<(Pending, World)>,
    durable: World,
    upload: Option<(ObjectWriter, Target, Data)>,
    held: Option<(ObjectReader, Object, Target)>,
    pub refused: u64,
    pub full: u64,
    pub mounts: u64,
}

/// The variant's name, by which the model names the error too.
fn name(error: &Error) -> String {
    let words = format!("{error:?}");
    let end = words.find(|c: char| !c.is_alphanumeric());
    words[..end.unwrap_or(words.len())].to_owned()
}

/// Never clone the handle: a stopped store has to be gone.
fn mounted(store: &Option<Store>) -> &Store {
    store.as_ref().unwrap()
}

impl Machine {
    pub fn new(plan: Plan) -> Self {
        let (drive, store) = plan.begin();
        let world = everything(&store).unwrap();
        Self {
            drive,
            store: Some(store),
            durable: world.clone(),
            world,
            plan,
            waiting: Vec::new(),
            upload: None,
            held: None,
            refused: 0,
            full: 0,
            mounts: 1,
        }
    }

    /// Stops the store, with an unmount if `is_clean`. Returns the drive and the model.
    pub fn stop(mut self, is_clean: bool) -> (Drive, World) {
        (self.upload, self.held) = (None, None);
        if is_clean {
            mounted(&self.store).unmount().unwrap();
        }
        (self.drive, self.world)
    }

    pub fn step(&mut self, step: &Step) -> Result<(), Wrong> {
        let store = mounted(&self.store);
        let done = match step {
            Step::Commit { calls, readable } => return self.commit(calls, *readable),
            Step::Upload(target, data) => return self.upload(*target, *data),
            Step::Restart { clean, number } => return self.restart(*clean, *number, Vec::new()),
            Step::Hold(target) => return self.hold(*target),
            Step::Trouble(after) => {
                self.drive.trouble((*after).into());
                Ok(())
            }
            Step::Wait => match self.waiting.pop() {
                Some((pending, world)) => {
                    if let Err(error) = pending.wait() {
                        return self.after_error(&error, vec![world]);
                    }
                    self.waiting.clear();
                    self.durable = world;
                    Ok(())
                }
                None => Ok(()),
            },
            Step::Abandon(data) => {
                let written = crate::common::written(store, &data.bytes());
                written.map(drop)
            }
            Step::Clean => store.clean_one().map(drop),
            Step::Seal => store.seal_open_zones(),
            Step::Flush => store.flush(),
            Step::Tend => store.tend().map(drop),
            Step::Check => return self.check(),
        };
        done.or_else(|error| self.not_done(&error, Vec::new()))
    }

    /// The store holds what the model holds, and fsck finds nothing.
    pub fn check(&mut self) -> Result<(), Wrong> {
        let store = mounted(&self.store);
        match everything(store) {
            Ok(found) if found == self.world => {}
            Ok(found) => return Err(difference(&found, &self.world)),
            Err(error) => return self.after_error(&error, Vec::new()),
        }
        match store.fsck(true, &mut |_, _| {}) {
            Ok(report) if report.is_clean() || self.drive.is_failing() => Ok(()),
            Ok(report) => Err(format!("fsck: {:#?}", report.details)),
            Err(error) => self.after_error(&error, Vec::new()),
        }
    }

    fn commit(&mut self, calls: &[call::Call], readable: bool) -> Result<(), Wrong> {
        let store = mounted(&self.store);
        let (mut tx, mut next, mut expected) = (Transaction::new(), self.world.clone(), Ok(()));
        for call in calls {
            if let Err(error) = add(store, &mut tx, &next, call) {
                return self.not_done(&error, Vec::new());
            }
            expected = next.carry_out(call);
            if expected.is_err() {
                break;
            }
        }
        let result = if readable {
            store.commit_readable(tx).map(Some)
        } else {
            store.commit(tx).map(|()| None)
        };
        match (result, expected) {
            (Ok(pending), Ok(())) => self.committed(pending, next),
            (Ok(_), Err(expected)) => return Err(format!("{calls:?} is done, not {expected}")),
            (Err(error), Err(expected)) if name(&error) == expected => self.refused += 1,
            (Err(error), expected) => {
                let also = if expected.is_ok() {
                    vec![next]
                } else {
                    Vec::new()
                };
                let what = format!("{calls:?} has to be {expected:?}");
                return self
                    .not_done(&error, also)
                    .map_err(|e| format!("{what}: {e}"));
            }
        }
        for target in calls.iter().flat_map(call::Call::targets) {
            self.look(target)?;
        }
        Ok(())
    }

    fn committed(&mut self, pending: Option<Pending>, next: World) {
        self.world = next;
        match pending {
            Some(pending) if !pending.is_durable() => {
                self.waiting.push((pending, self.world.clone()));
            }
            _ => {
                self.waiting.clear();
                self.durable = self.world.clone();
            }
        }
    }

    /// One object is as in the model.
    fn look(&mut self, target: Target) -> Result<(), Wrong> {
        let found = match find(mounted(&self.store), target) {
            Ok(found) => found,
            Err(error) if self.world.find(target) == Err(&name(&error)) => return Ok(()),
            Err(error) => return self.after_error(&error, Vec::new()),
        };
        match (self.world.find(target), &found) {
            (Ok(None), None) => Ok(()),
            (Ok(Some(expected)), Some(found)) if expected == found => Ok(()),
            (Ok(Some(expected)), Some(found)) => {
                Err(format!("{target:?}: {}", unlike(found, expected)))
            }
            (expected, found) => Err(format!(
                "{target:?}: there {}, expected {:?}",
                found.is_some(),
                expected.map(|o| o.is_some())
            )),
        }
    }

    fn upload(&mut self, target: Target, data: Data) -> Result<(), Wrong> {
        let Some((mut writer, target, data)) = self.upload.take() else {
            let bytes = data.bytes();
            let begun = mounted(&self.store).writer(None).and_then(|mut writer| {
                writer.write(&bytes[..bytes.len() / 2])?;
                Ok(writer)
            });
            return match begun {
                Ok(writer) => {
                    self.upload = Some((writer, target, data));
                    Ok(())
                }
                Err(error) => self.not_done(&error, Vec::new()),
            };
        };
        let bytes = data.bytes();
        let finished = writer.write(&bytes[bytes.len() / 2..]);
        let written = match finished.and_then(|()| writer.finish()) {
            Ok(written) => written,
            Err(error) => return self.not_done(&error, Vec::new()),
        };
        let (mut tx, mut next) = (Transaction::new(), self.world.clone());
        let expected = next.carry_out(&call::Call::Put(target, data, Vec::new()));
        tx.put(
            call::collection(target.0),
            call::object(target.1),
            written,
            Attributes::new(),
        );
        match (mounted(&self.store).commit(tx), expected) {
            (Ok(()), Ok(())) => self.committed(None, next),
            (Err(error), Err(expected)) if name(&error) == expected => {}
            (Err(error), Ok(())) => return self.not_done(&error, vec![next]),
            (done, expected) => return Err(format!("an upload is {done:?}, not {expected:?}")),
        }
        self.look(target)
    }

    /// Reads the object that is held open, then opens another. An open object keeps its bytes when it is replaced or
    /// removed; a change in place may be visible.
    fn hold(&mut self, target: Target) -> Result<(), Wrong> {
        if let Some((reader, object, target)) = self.held.take() {
            let is_same =
                matches!(self.world.find(target), Ok(Some(now)) if now.bytes == object.bytes);
            let mut bytes = vec![0; object.bytes.len()];
            match reader.read_at(0, &mut bytes) {
                Ok(_) if bytes == **object.bytes || !is_same => {}
                Ok(_) => return Err(format!("{target:?}, open for long, reads otherwise")),
                Err(error) if is_same => return self.after_error(&error, Vec::new()),
                Err(_) => {}
            }
        }
        if let Ok(Some(object)) = self.world.find(target) {
            match mounted(&self.store).open(call::collection(target.0), call::object(target.1)) {
                Ok(reader) => self.held = Some((reader, object.clone(), target)),
                Err(error) => return self.after_error(&error, Vec::new()),
            }
        }
        Ok(())
    }

    fn not_done(&mut self, error: &Error, also: Vec<World>) -> Result<(), Wrong> {
        if error.is_no_space() {
            return self.no_space(error);
        }
        self.after_error(error, also)
    }

    /// Accepts an error for lack of space only if the store holds much, or after a fault.
    fn no_space(&mut self, error: &Error) -> Result<(), Wrong> {
        let space = mounted(&self.store).statfs();
        let live = self.world.bytes() as u64;
        if live > space.capacity_bytes / 3 || self.drive.has_failed() {
            self.full += 1;
            return Ok(());
        }
        Err(format!("{error}, with {live} bytes in all: {space:?}"))
    }

    /// Accepts an error only after a fault. If the store has failed for good, mounts it again, and the mount decides
    /// which outcome holds.
    fn after_error(&mut self, error: &Error, also: Vec<World>) -> Result<(), Wrong> {
        if !self.drive.has_failed() {
            return Err(format!("no command failed: {error}"));
        }
        if mounted(&self.store).failure().is_some() || self.drive.is_off() {
            return self.restart(false, self.mounts as u32, also);
        }
        Ok(())
    }

    fn restart(&mut self, clean: bool, number: u32, also: Vec<World>) -> Result<(), Wrong> {
        let mut may = vec![self.durable.clone()];
        let store = self.store.take().unwrap();
        if clean && store.failure().is_none() && store.unmount().is_ok() {
            // A clean unmount has made everything durable.
            self.waiting.clear();
            may = vec![self.world.clone()];
        }
        for (pending, world) in std::mem::take(&mut self.waiting) {
            if pending.is_durable() {
                may.clear();
            }
            may.push(world);
        }
        may.extend(also);
        (self.upload, self.held) = (None, None);
        drop(store);
        self.drive.restart(number.into());
        let store = self.drive.mount(&self.plan, number);
        let store = store.map_err(|error| format!("the mount: {error}"))?;
        self.mounts += 1;
        let found = everything(&store).map_err(|error| format!("after a mount: {error}"))?;
        if !may.contains(&found) {
            let latest = may.last().unwrap();
            return Err(format!(
                "after a mount, one of {}: {}",
                may.len(),
                difference(&found, latest)
            ));
        }
        (self.durable, self.world) = (found.clone(), found);
        self.store = Some(store);
        Ok(())
    }
}
