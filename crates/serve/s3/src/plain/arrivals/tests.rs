//! Imports between any changes of a bucket that keeps versions.

use super::*;
use crate::attributes::{ETAG, LEGAL_HOLD, VERSION, VERSIONING, VERSIONING_ENABLED};
use crate::collections::versions_of;
use crate::test_bucket::{BUCKET, bucket, bucket_on, geometry, written};
use crate::versions::{Locks, Version, parse_name};
use device::changed::{Change as Changes, Changed};
use device::{MemoryDrive, ZonedDevice};
use proptest::prelude::*;
use runtime::Runtime;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use zone::{ByteOffset, ZoneCommand, ZoneError, ZoneResult};

const KEYS: [&str; 2] = ["a", "b"];
const HELD: Lock = Lock {
    retention: None,
    hold: Some(true),
};

/// An object of an archive.
#[derive(Clone, Debug)]
struct Brought {
    collection: String,
    name: Name,
    attributes: Attributes,
    bytes: Vec<u8>,
}

#[derive(Clone, Debug)]
enum Step {
    Put(usize, bool),
    Delete(usize),
    /// The version at this place, if its lock lets it go.
    DeleteVersion(usize, usize),
    Switch(bool),
    /// Writes an archive of all there is.
    Export,
    /// Brings one of the archives, its collections in this order or the other way round.
    Import(usize, bool, bool),
    /// Brings objects of another bucket, which may be locked there.
    Foreign(usize, bool, bool),
    /// What a program from before did where there was no current version: it put there what the archive had.
    Unjudged(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..KEYS.len();
    prop_oneof![
        4 => (key.clone(), any::<bool>()).prop_map(|(key, held)| Step::Put(key, held)),
        2 => key.clone().prop_map(Step::Delete),
        2 => (key.clone(), 0usize..4).prop_map(|(key, place)| Step::DeleteVersion(key, place)),
        1 => any::<bool>().prop_map(Step::Switch),
        2 => Just(Step::Export),
        3 => (0usize..3, any::<bool>(), any::<bool>())
            .prop_map(|(archive, overwrite, order)| Step::Import(archive, overwrite, order)),
        2 => (key, any::<bool>(), any::<bool>())
            .prop_map(|(key, overwrite, held)| Step::Foreign(key, overwrite, held)),
        1 => (0usize..3).prop_map(Step::Unjudged),
    ]
}

struct Bed {
    store: Store,
    locks: Locks,
    puts: u64,
    archives: Vec<Vec<Brought>>,
    /// What was locked here.
    held: BTreeSet<Vec<u8>>,
    /// Keys under which an older program has put something.
    spoilt: BTreeSet<String>,
}

impl Bed {
    fn new() -> Self {
        let (store, locks) = bucket(Runtime::seeded(1));
        locks.set(&store, BUCKET, Versioning::Enabled).unwrap();
        Self {
            store,
            locks,
            puts: 0,
            archives: vec![Vec::new()],
            held: BTreeSet::new(),
            spoilt: BTreeSet::new(),
        }
    }

    fn bytes(&mut self) -> Vec<u8> {
        self.puts += 1;
        self.puts.to_string().into_bytes()
    }

    fn put(&mut self, key: &str, held: bool) {
        let bytes = self.bytes();
        let lock = if held { HELD } else { Lock::default() };
        let data = written(&self.store, &bytes);
        let change = self.locks.change(&self.store, BUCKET, key).unwrap();
        let mut transaction = Transaction::new();
        let put = change.replace(&mut transaction, lock, |transaction, next| {
            transaction.put(BUCKET, key, data, next.mark(Attributes::new()));
        });
        // Where versions are suspended a lock may stand in the way.
        if put.is_ok() {
            self.store.commit(transaction).unwrap();
            if held {
                self.held.insert(bytes);
            }
        }
    }

    fn all(&self) -> Vec<Brought> {
        let mut all = Vec::new();
        for collection in [versions_of(BUCKET), BUCKET.to_owned()] {
            for info in self.store.list(&collection, "", "", 10_000).unwrap() {
                let reader = self.store.open(&collection, &info.name).unwrap();
                let mut bytes = Vec::new();
                reader.range(0..info.size).read_to_end(&mut bytes).unwrap();
                all.push(Brought {
                    bytes,
                    collection: collection.clone(),
                    name: info.name,
                    attributes: info.attributes,
                });
            }
        }
        all
    }

    /// Whatever comes, nothing goes but a `null` where versions are suspended.
    fn import(&self, archive: Vec<Brought>, overwrite: bool) {
        let before = self.all();
        self.bring(archive, overwrite);
        let after: BTreeSet<Vec<u8>> = self.all().into_iter().map(|one| one.bytes).collect();
        let bucket = self.store.collection(BUCKET).unwrap().unwrap();
        let is_enabled = Versioning::of(&bucket) == Versioning::Enabled;
        for one in before {
            let version = match one.collection == BUCKET {
                true => Version::of(&one.attributes),
                false => parse_name(one.name.text().unwrap()).unwrap().1,
            };
            let may_go = !is_enabled && version.id() == "null";
            assert!(may_go || after.contains(&one.bytes), "{one:?}");
        }
    }

    fn bring(&self, archive: Vec<Brought>, overwrite: bool) {
        for one in archive {
            let object = (&*one.collection, &one.name);
            let found = arrival(&self.store, object, &one.attributes, overwrite, 0).unwrap();
            let mut transaction = Transaction::new();
            let data = written(&self.store, &one.bytes);
            let put = |transaction: &mut Transaction, attributes: Attributes| {
                transaction.put(&one.collection, &one.name, data, attributes);
            };
            match found {
                Arrival::Put => put(&mut transaction, one.attributes.clone()),
                Arrival::NewVersion => {
                    let key = one.name.text().unwrap();
                    let (store, at) = (&self.store, (BUCKET, key));
                    let attributes = one.attributes.clone();
                    if put_above(store, &mut transaction, at, attributes, 0, put)
                        .unwrap()
                        .is_some()
                    {
                        continue;
                    }
                }
                Arrival::Kept | Arrival::Newer | Arrival::LeftOut | Arrival::Locked(_) => continue,
            }
            self.store.commit(transaction).unwrap();
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Put(key, held) => self.put(KEYS[key], held),
            Step::Delete(key) => {
                let change = self.locks.change(&self.store, BUCKET, KEYS[key]).unwrap();
                _ = change.delete(&[], Store::commit);
            }
            Step::DeleteVersion(key, place) => {
                let ids = self.versions().remove(KEYS[key]).unwrap_or_default();
                if let Some((version, _)) = ids.get(place) {
                    let change = self.locks.change(&self.store, BUCKET, KEYS[key]).unwrap();
                    _ = change.delete_version(version.id(), true, &[], Store::commit);
                }
            }
            Step::Switch(enabled) => {
                let to = match enabled {
                    true => Versioning::Enabled,
                    false => Versioning::Suspended,
                };
                self.locks.set(&self.store, BUCKET, to).unwrap();
            }
            Step::Export => self.archives.push(self.all()),
            Step::Import(archive, overwrite, backwards) => {
                let mut archive = self.archives[archive % self.archives.len()].clone();
                if backwards {
                    archive.reverse();
                }
                self.import(archive, overwrite);
            }
            Step::Foreign(key, overwrite, held) => {
                let bytes = self.bytes();
                let lock = if held { HELD } else { Lock::default() };
                let brought = Brought {
                    collection: BUCKET.to_owned(),
                    name: KEYS[key].into(),
                    attributes: lock.encode(),
                    bytes,
                };
                self.import(vec![brought], overwrite);
            }
            Step::Unjudged(archive) => {
                for one in self.archives[archive % self.archives.len()].clone() {
                    let is_there = self.store.stat(BUCKET, &one.name).unwrap().is_some();
                    if one.collection != BUCKET || is_there {
                        continue;
                    }
                    self.spoilt.insert(one.name.to_string());
                    let mut transaction = Transaction::new();
                    let data = written(&self.store, &one.bytes);
                    transaction.put(BUCKET, &one.name, data, one.attributes);
                    self.store.commit(transaction).unwrap();
                }
            }
        }
    }

    /// Of each key its versions, the current one first, if there is one, and whether each is it.
    fn versions(&self) -> BTreeMap<String, Vec<(Version, bool)>> {
        let mut found = BTreeMap::<String, Vec<_>>::new();
        for one in self.all() {
            let name = one.name.text().unwrap();
            match one.collection == BUCKET {
                true => {
                    let versions = found.entry(name.to_owned()).or_default();
                    versions.insert(0, (Version::of(&one.attributes), true));
                }
                false => {
                    let (key, version) = parse_name(name).unwrap();
                    found.entry(key).or_default().push((version, false));
                }
            }
        }
        found
    }

    fn check(&self) {
        let there: BTreeSet<Vec<u8>> = self
            .all()
            .into_iter()
            .filter(|one| one.attributes.contains_key(LEGAL_HOLD))
            .map(|one| one.bytes)
            .collect();
        assert!(self.held.is_subset(&there), "{:?} in {there:?}", self.held);
        for (key, versions) in self.versions() {
            if self.spoilt.contains(&key) {
                continue;
            }
            let ids: BTreeSet<&str> = versions.iter().map(|(version, _)| version.id()).collect();
            assert_eq!(ids.len(), versions.len(), "{key}: {versions:?}");
            assert!(versions.is_sorted(), "{key}: {versions:?}");
        }
    }
}

proptest! {
    #[test]
    fn nothing_that_is_locked_goes_and_each_version_has_an_id_of_its_own(
        steps in prop::collection::vec(step(), 1..40)
    ) {
        let mut bed = Bed::new();
        for step in steps {
            bed.take(step);
            bed.check();
        }
    }
}

#[test]
fn a_bucket_comes_back_as_it_was() {
    let mut bed = Bed::new();
    for round in 0..3 {
        for key in KEYS {
            bed.put(key, round == 1);
        }
        bed.take(Step::Delete(0));
    }
    let was = bed.all();
    for backwards in [false, true] {
        let mut other = Bed::new();
        other.archives = vec![was.clone()];
        other.take(Step::Import(0, false, backwards));
        let shown = |all: Vec<Brought>| format!("{all:?}");
        assert_eq!(shown(other.all()), shown(was.clone()));
    }
}

#[test]
fn what_was_removed_since_comes_back_above_and_only_if_it_is_asked_for() {
    let mut bed = Bed::new();
    bed.put("a", false);
    bed.take(Step::Export);
    bed.put("a", true);
    bed.take(Step::Delete(0));
    bed.take(Step::Import(1, false, false));
    assert_eq!(
        bed.versions()["a"]
            .iter()
            .filter(|(_, current)| *current)
            .count(),
        0
    );
    bed.take(Step::Import(1, true, false));
    let versions = &bed.versions()["a"];
    assert!(versions[0].1 && versions.len() == 4, "{versions:?}");
    bed.check();
    let bucket = bed.store.collection(BUCKET).unwrap().unwrap();
    assert_eq!(bucket.attributes[VERSIONING], VERSIONING_ENABLED);
    let current = bed.store.stat(BUCKET, "a").unwrap().unwrap();
    assert!(current.attributes.contains_key(VERSION));
}

#[test]
fn what_is_newer_than_the_current_version_is_told_and_not_said_to_be_there() {
    let mut bed = Bed::new();
    bed.put("a", false);
    let other = Bed::new();
    other.import(bed.all(), false);
    for _ in 0..3 {
        bed.put("a", false);
    }
    let judged = |overwrite| {
        let of = |one: &Brought| {
            let object = (&*one.collection, &one.name);
            arrival(&other.store, object, &one.attributes, overwrite, 0).unwrap()
        };
        bed.all().iter().map(of).collect::<Vec<_>>()
    };
    // The earlier versions, the newest first, and the current one.
    let (newer, kept) = (Arrival::Newer, Arrival::Kept);
    let [third, second, first, current] = judged(false)[..] else {
        panic!("a version is missing")
    };
    assert_eq!([third, second, current], [newer; 3]);
    assert_eq!(judged(true)[3], Arrival::NewVersion);
    assert_eq!(first, kept);
}

/// As after an import that was interrupted.
#[test]
fn what_has_come_above_does_not_come_again() {
    let mut bed = Bed::new();
    bed.put("a", false);
    let tag = |tag: &[u8]| Attributes::from([(ETAG.to_owned(), tag.to_vec())]);
    let brought = Brought {
        collection: BUCKET.to_owned(),
        name: "a".into(),
        attributes: tag(b"1"),
        bytes: bed.bytes(),
    };
    for versions in [2, 2] {
        bed.import(vec![brought.clone()], true);
        assert_eq!(bed.versions()["a"].len(), versions);
    }
    let attributes = tag(b"2");
    bed.import(
        vec![Brought {
            attributes,
            ..brought
        }],
        true,
    );
    assert_eq!(bed.versions()["a"].len(), 3);
}

/// The versions behind it would have one number, and one id.
#[test]
fn a_version_that_no_other_can_follow_does_not_come_as_it_is() {
    for is_beside in [false, true] {
        let mut bed = Bed::new();
        let last = format!("{:032x}", 0);
        let (collection, name) = match is_beside {
            false => (BUCKET.to_owned(), "a".to_owned()),
            true => (versions_of(BUCKET), format!("a\0\0{last}")),
        };
        let brought = Brought {
            collection,
            name: (&*name).into(),
            attributes: Attributes::from([(VERSION.to_owned(), last.into())]),
            bytes: bed.bytes(),
        };
        bed.import(vec![brought], true);
        for _ in 0..3 {
            bed.put("a", false);
            bed.check();
        }
        let versions = bed.versions()["a"].len();
        assert_eq!(versions, if is_beside { 3 } else { 4 });
    }
}

/// All reads of the drive fail while it is set.
#[derive(Default)]
struct Unreadable(AtomicBool);

impl Changes<MemoryDrive> for Unreadable {
    fn read(&self, drive: &MemoryDrive, at: ByteOffset, buffer: &mut [u8]) -> ZoneResult<()> {
        match self.0.load(SeqCst) {
            true => Err(ZoneError::Io {
                command: ZoneCommand::Read,
                at,
                source: Arc::new(io::ErrorKind::Other.into()),
            }),
            false => drive.read(at, buffer),
        }
    }
}

#[test]
fn what_is_damaged_is_replaced_by_an_equal_copy() {
    let drive = Arc::new(Changed {
        drive: MemoryDrive::new(geometry()).unwrap(),
        change: Unreadable::default(),
    });
    let (store, locks) = bucket_on(drive.clone(), Runtime::seeded(1));
    locks.set(&store, BUCKET, Versioning::Enabled).unwrap();
    let attributes = Attributes::from([(ETAG.to_owned(), b"1".to_vec())]);
    let data = written(&store, &[7; 100_000]);
    let change = locks.change(&store, BUCKET, "a").unwrap();
    let mut transaction = Transaction::new();
    let put = change.replace(&mut transaction, Lock::default(), |transaction, next| {
        transaction.put(BUCKET, "a", data, next.mark(attributes.clone()));
    });
    assert!(put.is_ok());
    drop(change);
    store.commit(transaction).unwrap();
    let name = Name::from("a");
    for (is_damaged, overwrite, expected) in [
        (false, true, Arrival::Kept),
        (true, false, Arrival::Kept),
        (true, true, Arrival::NewVersion),
    ] {
        drive.change.0.store(is_damaged, SeqCst);
        let found = arrival(&store, (BUCKET, &name), &attributes, overwrite, 0).unwrap();
        assert_eq!(found, expected);
    }
}
