//! One trial: a damaged store is mounted, read, scrubbed, written to, mounted again, read and checked.

use super::report::Outcome;
use super::strike::Strike;
use super::world::{COLLECTION, Object, World, mount_options};
use device::ZonedDevice;
use device::faults::Faults;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use store::{Attributes, Store, Transaction};

/// Bytes that are read at once.
const STEP: usize = 64 << 10;
/// Bytes that an object may lose on either side of damaged ones: the rest of a checksum block or of a compressed
/// blob.
const BESIDE: u64 = 512 << 10;
/// The most objects that may share the same bytes.
const CLONES: u64 = 16;

/// Applies the damages to a copy of the world's drive, and reports what its store does. A panic is an outcome, too.
pub fn outcome(world: &World, strikes: &[Strike], two: bool) -> Outcome {
    let tried = catch_unwind(AssertUnwindSafe(|| Trial::new(world, strikes, two).run()));
    tried.unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().cloned();
        let words = words.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        Outcome {
            aborted: Some(words.unwrap_or_else(|| "a panic".to_owned())),
            ..Outcome::default()
        }
    })
}

struct Trial<'a> {
    world: &'a World,
    device: Arc<dyn ZonedDevice>,
    /// Bytes of data that were damaged.
    damaged: u64,
    two: bool,
    /// Whether a damaged zone takes writes but can never be read.
    stays_unreadable: bool,
    outcome: Outcome,
}

impl<'a> Trial<'a> {
    fn new(world: &'a World, strikes: &[Strike], two: bool) -> Self {
        let drive = Arc::new(world.now.snapshot());
        let device = Arc::new(Faults::new(drive.clone()));
        for strike in strikes {
            strike.hit(world, &drive, &device);
        }
        Self {
            world,
            device,
            damaged: strikes.iter().map(|s| s.data_bytes(world)).sum(),
            two,
            stays_unreadable: strikes.iter().any(Strike::stays_unreadable),
            outcome: Outcome::default(),
        }
    }

    fn run(mut self) -> Outcome {
        let Some(store) = self.mounted() else {
            return self.outcome;
        };
        let before = self.read_all(&store);
        if self.two {
            // With two damages, data may be lost, but not be wrong.
            return self.outcome;
        }
        self.scrub(&store);
        let new = Object {
            data: vec![5; 70_000],
            ..Object::default()
        };
        if let Err(error) = put(&store, "new", &new) {
            self.outcome.left.push(format!("a put: {error}"));
        }
        if let Err(error) = store.unmount() {
            self.outcome.left.push(format!("the unmount: {error}"));
        }
        drop(store);
        if let Some(store) = self.mounted() {
            let after = self.read_all(&store);
            if after != before {
                let words = format!("{before} bytes unreadable before the scrub, {after} after it");
                self.outcome.left.push(words);
            }
            if read(&store, "new").ok().as_ref() != Some(&new.data) {
                self.outcome.lost.push("what was put afterwards".to_owned());
            }
            self.check(&store);
        }
        self.outcome
    }

    fn mounted(&mut self) -> Option<Store> {
        match Store::mount(self.device.clone(), mount_options(false)) {
            Ok(store) => Some(store),
            Err(error) => {
                // With two damages, the mount may be refused.
                if !self.two {
                    self.outcome.refused = Some(error.to_string());
                }
                None
            }
        }
    }

    /// Compares all objects with what they should be. Returns how many bytes cannot be read.
    fn read_all(&mut self, store: &Store) -> u64 {
        let mut lost = 0;
        let names = match store.list(COLLECTION, "", "", usize::MAX) {
            Ok(found) => found
                .into_iter()
                .map(|info| info.name.to_string())
                .collect(),
            Err(error) => {
                if !self.two {
                    self.outcome.lost.push(format!("the list: {error}"));
                }
                Vec::new()
            }
        };
        for name in &names {
            if name != "new" && !self.world.objects.contains_key(name) {
                self.outcome
                    .wrong
                    .push(format!("{name}, which was removed"));
            }
        }
        for (name, expected) in &self.world.objects {
            match self.read_object(store, name, expected) {
                Ok(bytes) => lost += bytes,
                Err(error) if self.two && !is_absent(&error) => {}
                Err(error) => self.outcome.lost.push(format!("{name}: {error}")),
            }
        }
        let most = match self.damaged {
            0 => 0,
            damaged => (damaged + 2 * BESIDE) * CLONES,
        };
        if lost > most && !self.two {
            let words = format!("{lost} bytes, where {} were damaged", self.damaged);
            self.outcome.lost.push(words);
        }
        self.outcome.lost_bytes = self.outcome.lost_bytes.max(lost);
        lost
    }

    /// Compares one object with what it should be. Returns how many of its bytes cannot be read.
    fn read_object(&mut self, store: &Store, name: &str, expected: &Object) -> store::Result<u64> {
        let object = store.open(COLLECTION, name)?;
        let info = object.info();
        let step = info.attributes.get("step").cloned().unwrap_or_default();
        if info.size != expected.data.len() as u64 || step != expected.attribute.as_bytes() {
            let words = format!(
                "{name}: of step {}, not {}",
                step.escape_ascii(),
                expected.attribute
            );
            self.outcome.wrong.push(words);
            return Ok(0);
        }
        let mut lost = 0;
        for (number, part) in expected.data.chunks(STEP).enumerate() {
            let mut bytes = vec![0; part.len()];
            match object.read_at((number * STEP) as u64, &mut bytes) {
                Ok(_) if bytes == part => {}
                Ok(_) => self.outcome.wrong.push(format!("{name} in part {number}")),
                Err(_) => lost += part.len() as u64,
            }
        }
        let omap = store.omap(COLLECTION, name, b"", usize::MAX)?;
        if omap.into_iter().collect::<BTreeMap<_, _>>() != expected.omap {
            self.outcome.wrong.push(format!("the omap of {name}"));
        }
        Ok(lost)
    }

    /// Scrubs the store, which has to repair everything that has another copy.
    fn scrub(&mut self, store: &Store) {
        match store.scrub(true, |_| true) {
            Ok(true) => {}
            Ok(false) => self.outcome.left.push("the scrub did not end".to_owned()),
            Err(error) => self.outcome.left.push(format!("the scrub: {error}")),
        }
        match store.scrub_status() {
            Ok(status) if status.metadata_lost > 0 => {
                let words = format!("{} files of metadata lost", status.metadata_lost);
                self.outcome.left.push(words);
            }
            Ok(_) => {}
            Err(error) => self.outcome.left.push(error.to_string()),
        }
        if let Err(error) = store.health() {
            self.outcome.left.push(format!("health: {error}"));
        }
    }

    /// Runs fsck, which may find nothing but damaged bytes of objects.
    fn check(&mut self, store: &Store) {
        let report = match store.fsck(true, &mut |_, _| {}) {
            Ok(report) => report,
            Err(error) => return self.outcome.left.push(format!("the check: {error}")),
        };
        // A zone that stays unreadable is found damaged again after each repair.
        let of_data = ["checksum mismatch", "unreadable extent"];
        let of_copy = "file system: one of two copies is damaged";
        let mut others = report.errors.keys();
        if let Some(kind) = others.find(|kind| {
            let is_allowed = of_data.contains(&kind.as_str());
            !(is_allowed || self.stays_unreadable && *kind == of_copy)
        }) {
            let detail = report.details.iter().find(|d| d.contains(kind.as_str()));
            let detail = detail.unwrap_or(kind);
            self.outcome.left.push(format!("fsck: {detail}"));
        }
        if report.summaries_unreadable > 0 || report.rows_without_copy > 0 {
            self.outcome.left.push(report.copies());
        }
    }
}

fn is_absent(error: &store::Error) -> bool {
    matches!(
        error,
        store::Error::NoObject { .. } | store::Error::NoCollection { .. }
    )
}

fn put(store: &Store, name: &str, object: &Object) -> store::Result<()> {
    let mut writer = store.writer(Some(object.data.len() as u64))?;
    writer.write(&object.data)?;
    let mut tx = Transaction::new();
    tx.put(COLLECTION, name, writer.finish()?, Attributes::new());
    store.commit(tx)
}

fn read(store: &Store, name: &str) -> store::Result<Vec<u8>> {
    let object = store.open(COLLECTION, name)?;
    let mut bytes = vec![0; object.info().size as usize];
    object.read_at(0, &mut bytes)?;
    Ok(bytes)
}
