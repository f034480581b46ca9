//! Walks of a store in memory against what the rules say of a listing, read anew and without batches.

use super::*;
use crate::attributes::{LIFECYCLE, ObjectAttributes};
use crate::collections::{uploads_of, versions_of};
use crate::conditions::Preconditions;
use crate::copy;
use crate::lifecycle_rules::{admit, decode, encode};
use crate::lock::Lock;
use crate::tags::Tags;
use crate::test_bucket::{BUCKET, bucket_on, damaged, geometry, with_damaged_records, written};
use crate::versions::Versioning;
use device::{MemoryDrive, ZonedDevice};
use objects::digest::hex;
use proptest::prelude::*;
use runtime::{Clock, Runtime, SystemClock};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use store::{CollectionInfo, Transaction};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

const KEYS: [&str; 4] = ["a", "a\0", "b", "tmp/x"];
const HOUR: u64 = 3_600_000_000;

/// The host's, but for the time of day.
struct Days(AtomicU64, SystemClock);

impl Clock for Days {
    fn unix_micros(&self) -> u64 {
        self.0.fetch_add(1, SeqCst)
    }

    fn now(&self) -> Duration {
        self.1.now()
    }

    fn wait_until(&self, moment: Duration) {
        self.1.wait_until(moment);
    }
}

fn runtime(clock: &Arc<Days>) -> Runtime {
    Runtime::seeded(1).with_clock(clock.clone())
}

struct Fixture {
    store: Store,
    locks: Locks,
    clock: Arc<Days>,
}

impl Fixture {
    fn new() -> Self {
        Self::on(Arc::new(MemoryDrive::new(geometry()).unwrap()))
    }

    fn on(drive: Arc<dyn ZonedDevice>) -> Self {
        let start = AtomicU64::new(1_700_000_000_000_000);
        let clock = Arc::new(Days(start, SystemClock::default()));
        let (store, locks) = bucket_on(drive, runtime(&clock));
        Self {
            store,
            locks,
            clock,
        }
    }

    /// The same; an object that shows data that another one has shown, too, cannot be removed.
    fn damaged(self, drive: &Arc<dyn ZonedDevice>) -> Self {
        Self {
            store: damaged(self.store, drive, runtime(&self.clock)),
            ..self
        }
    }

    /// The same with damaged records of the objects whose names end so.
    fn with_damaged_records(mut self, drive: &Arc<dyn ZonedDevice>, ends: &[&str]) -> Self {
        for end in ends {
            self.store = with_damaged_records(self.store, drive, end);
        }
        self
    }

    fn put(&self, key: &str, size: usize, tag: bool) {
        let data = written(&self.store, &vec![1; size]);
        let tags = if tag {
            vec![("t".to_owned(), "1".to_owned())]
        } else {
            Vec::new()
        };
        let attributes = ObjectAttributes {
            tags: Tags::new(tags).unwrap(),
            ..Default::default()
        };
        let change = self.locks.change(&self.store, BUCKET, key).unwrap();
        let mut transaction = Transaction::new();
        change
            .replace(&mut transaction, Lock::default(), |transaction, next| {
                transaction.put(BUCKET, key, data, next.mark(attributes.encode()));
            })
            .unwrap();
        self.store.commit(transaction).unwrap();
    }

    fn delete(&self, key: &str) {
        let change = self.locks.change(&self.store, BUCKET, key).unwrap();
        change.delete(&[], Store::commit).unwrap();
    }

    fn rules(&self, rules: &str) {
        let document = format!("<LifecycleConfiguration>{rules}</LifecycleConfiguration>");
        let mut id = 0;
        let named = || {
            id += 1;
            id.to_string()
        };
        let rules = admit(decode(document.as_bytes()).unwrap(), named).unwrap();
        let document = encode(&rules).unwrap();
        let keep = |attributes: &mut store::Attributes, _: &mut Transaction| {
            attributes.insert(LIFECYCLE.to_owned(), document);
            Ok(())
        };
        self.locks.change_bucket(&self.store, BUCKET, keep).unwrap();
    }

    /// All versions with whole records, with all that rules ask for.
    fn versions(&self) -> Vec<Known> {
        let found = entries(&self.store, (BUCKET, ""), "", usize::MAX >> 1, |_| Ok(()));
        let known = |entry: Entry| Known {
            key: entry.plain,
            id: entry.version.id().to_owned(),
            is_marker: entry.is_marker,
            modified_micros: entry.info.modified_micros,
            size: entry.info.size,
            has_tag: entry.info.attributes.contains_key(TAGS),
        };
        found.unwrap().into_iter().map(known).collect()
    }

    fn walk(&self) -> Gone {
        let mut walk = Walk::new(BUCKET.to_owned());
        let now = self.clock.0.load(SeqCst);
        while walk.step(&self.store, &self.locks, now).unwrap() {}
        walk.gone
    }
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Known {
    key: String,
    id: String,
    is_marker: bool,
    modified_micros: u64,
    size: u64,
    has_tag: bool,
}

/// A rule, its document and what it means in other words.
#[derive(Clone, Debug)]
struct Said {
    prefix: &'static str,
    tag: bool,
    larger_than: Option<u64>,
    days: Option<u64>,
    lone_markers: bool,
    earlier: Option<(u64, usize)>,
}

impl Said {
    fn document(&self) -> String {
        let mut filter = format!("<Prefix>{}</Prefix>", self.prefix);
        if self.tag {
            filter += "<Tag><Key>t</Key><Value>1</Value></Tag>";
        }
        if let Some(bytes) = self.larger_than {
            filter += &format!("<ObjectSizeGreaterThan>{bytes}</ObjectSizeGreaterThan>");
        }
        let mut actions = String::new();
        if let Some(days) = self.days {
            actions += &format!("<Expiration><Days>{days}</Days></Expiration>");
        } else if self.lone_markers {
            actions += "<Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>";
        }
        if let Some((days, kept)) = self.earlier {
            let kept = match kept {
                0 => String::new(),
                kept => {
                    format!("<NewerNoncurrentVersions>{kept}</NewerNoncurrentVersions>")
                }
            };
            actions += &format!(
                "<NoncurrentVersionExpiration>{kept}<NoncurrentDays>{days}</NoncurrentDays></NoncurrentVersionExpiration>"
            );
        }
        format!(
            "<Rule><Filter><And>{filter}</And></Filter><Status>Enabled</Status>{actions}</Rule>"
        )
    }

    fn takes(&self, version: &Known) -> bool {
        let plain = !self.tag && self.larger_than.is_none();
        version.key.starts_with(self.prefix)
            && if version.is_marker {
                plain
            } else {
                (!self.tag || version.has_tag)
                    && self.larger_than.is_none_or(|bytes| version.size > bytes)
            }
    }

    /// Whether the version at `n` of all of its key, the newest first, is to go.
    fn removes(&self, all: &[&Known], n: usize, now: u64) -> bool {
        let version = all[n];
        let passed = |since: u64, days: u64| {
            let midnights = now / (24 * HOUR) - since / (24 * HOUR);
            midnights > days
        };
        if !self.takes(version) {
            return false;
        }
        if n > 0 {
            return self
                .earlier
                .is_some_and(|(days, kept)| n > kept && passed(all[n - 1].modified_micros, days));
        }
        let is_old = self
            .days
            .is_some_and(|days| passed(version.modified_micros, days));
        match version.is_marker {
            false => is_old,
            true => all.len() == 1 && (is_old || (self.days.is_none() && self.lone_markers)),
        }
    }
}

fn said() -> impl Strategy<Value = Said> {
    let prefix = prop::sample::select(vec!["", "a", "tmp/"]);
    let earlier = prop::option::of((1u64..3, 0usize..3));
    (
        prefix,
        any::<bool>(),
        prop::option::of(4u64..6),
        prop::option::of(1u64..4),
        earlier,
    )
        .prop_map(|(prefix, tag, larger_than, days, earlier)| Said {
            prefix,
            tag,
            larger_than,
            days,
            lone_markers: days.is_none() && !tag && larger_than.is_none(),
            earlier,
        })
        .prop_filter("a rule does something", |said| {
            said.days.is_some() || said.lone_markers || said.earlier.is_some()
        })
}

#[derive(Clone, Debug)]
enum Step {
    Put(usize, usize, bool),
    Delete(usize),
    Hours(u64),
    Versions(Versioning),
    Walk,
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..KEYS.len();
    prop_oneof![
        6 => (key.clone(), 0usize..9, any::<bool>()).prop_map(|(key, size, tag)| Step::Put(key, size, tag)),
        2 => key.prop_map(Step::Delete),
        4 => (1u64..40).prop_map(Step::Hours),
        1 => prop::sample::select(vec![Versioning::Enabled, Versioning::Suspended]).prop_map(Step::Versions),
        2 => Just(Step::Walk),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.div_ceil(4), ..Default::default() })]

    #[test]
    fn what_rules_say_goes_and_all_else_stays(
        rules in prop::collection::vec(said(), 1..4),
        steps in prop::collection::vec(step(), 10..60),
    ) {
        let fixture = Fixture::new();
        fixture.rules(&rules.iter().map(Said::document).collect::<String>());
        let mut versioning = Versioning::Never;
        for step in steps.into_iter().chain([Step::Hours(200), Step::Walk]) {
            match step {
                Step::Put(key, size, tag) => fixture.put(KEYS[key], size, tag),
                Step::Delete(key) => fixture.delete(KEYS[key]),
                Step::Hours(hours) => {
                    fixture.clock.0.fetch_add(hours * HOUR, SeqCst);
                }
                Step::Versions(wanted) => {
                    fixture.locks.set(&fixture.store, BUCKET, wanted).unwrap();
                    versioning = wanted;
                }
                Step::Walk => {
                    let before = fixture.versions();
                    let now = fixture.clock.0.load(SeqCst);
                    let mut wanted = BTreeSet::new();
                    let mut markers = BTreeSet::new();
                    // What goes now or in the next walk.
                    let mut either = BTreeSet::new();
                    for key in KEYS {
                        let all: Vec<&Known> = before.iter().filter(|version| version.key == key).collect();
                        let goes = |n: usize| rules.iter().any(|rule| rule.removes(&all, n, now));
                        let current = all.first().is_some_and(|version| !version.is_marker) && goes(0);
                        let mut left: Vec<Known> = (0..all.len())
                            .filter(|n| match (n, versioning) {
                                // It is an earlier version now, but where none are kept.
                                (0, Versioning::Never) => !current,
                                (0, Versioning::Enabled) => current || !goes(0),
                                (0, Versioning::Suspended) => !goes(0) || (current && all[0].id != "null"),
                                (n, _) => !goes(*n),
                            })
                            .map(|n| all[n].clone())
                            .collect();
                        if current && versioning == Versioning::Suspended {
                            // The marker without a number takes the place of the version without one, which counts for those
                            // behind it as long as it is there.
                            left.retain(|version| version.id != "null");
                            let others: Vec<&Known> = all.iter().copied().filter(|version| version.id != "null").collect();
                            let stays = |n: usize| !rules.iter().any(|rule| rule.removes(&others, n, now));
                            let behind = all.iter().skip_while(|version| version.id != "null").skip(1);
                            either.extend(behind.filter(|version| {
                                let place = others.iter().position(|other| other == *version);
                                place.is_some_and(stays)
                            }).map(|version| (*version).clone()));
                        }
                        if current && versioning != Versioning::Never {
                            markers.insert(key.to_owned());
                        }
                        wanted.extend(left);
                    }
                    let gone = fixture.walk();
                    let found = fixture.versions();
                    let (new, found): (Vec<Known>, Vec<Known>) =
                        found.into_iter().partition(|version| version.modified_micros >= now);
                    let found = found.into_iter().filter(|version| !either.contains(version) || wanted.contains(version));
                    prop_assert_eq!(found.collect::<BTreeSet<_>>(), wanted);
                    prop_assert!(new.iter().all(|version| version.is_marker));
                    prop_assert_eq!(new.len(), markers.len());
                    prop_assert_eq!(new.into_iter().map(|version| version.key).collect::<BTreeSet<_>>(), markers);
                    // What a second walk removes is what the first has made room for.
                    let lone = fixture.walk();
                    prop_assert_eq!((lone.objects, lone.uploads), (0, 0));
                    prop_assert!(gone.uploads == 0);
                }
            }
        }
    }
}

#[test]
fn what_has_changed_since_the_look_stays() {
    let fixture = Fixture::new();
    let store = &fixture.store;
    let ids = || {
        let found = fixture.versions().into_iter();
        found.map(|version| version.id).collect::<Vec<_>>()
    };
    let look = || {
        let mut walk = Walk::new(BUCKET.to_owned());
        let (due, _) = walk.look(store, "", "", |_| true).unwrap();
        assert_eq!(due.len(), 1);
        (walk, due)
    };
    fixture.put("a", 1, true);
    // It is another object.
    let (mut walk, due) = look();
    fixture.put("a", 2, true);
    walk.remove(store, &fixture.locks, due).unwrap();
    assert_eq!((walk.gone, ids().len()), (Gone::default(), 1));
    // It was copied onto itself.
    let (mut walk, due) = look();
    let from = (BUCKET.to_owned(), "a".to_owned(), None);
    let source = copy::source::open(store, &from, &Preconditions::default()).unwrap();
    let mut onto_itself = Transaction::new();
    source.put(&mut onto_itself, 0..2, (BUCKET, "a"), None, 0);
    store.commit(onto_itself).unwrap();
    walk.remove(store, &fixture.locks, due).unwrap();
    assert_eq!((walk.gone, ids().len()), (Gone::default(), 1));
    // It has other tags.
    let (mut walk, due) = look();
    let mut tags = Transaction::new();
    let other = store::Attributes::from([(TAGS.to_owned(), b"t\t2\n".to_vec())]);
    tags.update_attributes(BUCKET, "a", other, &[]);
    store.commit(tags).unwrap();
    walk.remove(store, &fixture.locks, due).unwrap();
    assert_eq!((walk.gone, ids().len()), (Gone::default(), 1));
    // It is an earlier version by now, and the current one another.
    let (mut walk, due) = look();
    fixture
        .locks
        .set(store, BUCKET, Versioning::Enabled)
        .unwrap();
    fixture.put("a", 3, false);
    walk.remove(store, &fixture.locks, due).unwrap();
    assert_eq!((walk.gone, ids().len()), (Gone::default(), 2));
    // It has become the current version, because a client has removed the newer one.
    let mut walk = Walk::new(BUCKET.to_owned());
    let (mut due, _) = walk.look(store, "", "", |_| true).unwrap();
    due.retain(|one| one.newer.is_some());
    assert_eq!(due.len(), 1);
    let change = fixture.locks.change(store, BUCKET, "a").unwrap();
    let newest = &ids()[0];
    change
        .delete_version(newest, false, &[], Store::commit)
        .unwrap();
    drop(change);
    walk.remove(store, &fixture.locks, due).unwrap();
    assert_eq!((walk.gone, ids().len()), (Gone::default(), 1));
    fixture.put("a", 4, false);
    // Nothing has changed.
    let mut walk = Walk::new(BUCKET.to_owned());
    let (due, _) = walk.look(store, "", "", |_| true).unwrap();
    walk.remove(store, &fixture.locks, due).unwrap();
    assert_eq!((walk.gone.objects, walk.gone.earlier), (1, 1));
    assert!(fixture.versions().iter().all(|version| version.key == "a"));
}

/// An archive may have an object from long ago.
#[test]
fn a_version_that_an_import_replaces_is_as_old_as_the_import() {
    let fixture = Fixture::new();
    let store = &fixture.store;
    let enabled = Versioning::Enabled;
    fixture.locks.set(store, BUCKET, enabled).unwrap();
    fixture.rules(
        "<Rule><Filter/><Status>Enabled</Status><NoncurrentVersionExpiration><NoncurrentDays>30</NoncurrentDays>\
         </NoncurrentVersionExpiration></Rule>",
    );
    let long_ago = fixture.clock.0.load(SeqCst);
    let put_old = |transaction: &mut Transaction, attributes| {
        let data = written(store, b"old");
        transaction
            .put(BUCKET, "a", data, attributes)
            .set_modified(BUCKET, "a", long_ago);
    };
    fixture.clock.0.fetch_add(100 * 24 * HOUR, SeqCst);
    fixture.put("a", 1, false);
    fixture.clock.0.fetch_add(100 * 24 * HOUR, SeqCst);
    let now = fixture.clock.0.load(SeqCst);
    let mut transaction = Transaction::new();
    let (at, attributes) = ((BUCKET, "a"), store::Attributes::new());
    let refused =
        crate::plain::put_above(store, &mut transaction, at, attributes, now, put_old).unwrap();
    assert_eq!(refused, None);
    store.commit(transaction).unwrap();
    assert_eq!((fixture.walk().earlier, fixture.versions().len()), (0, 2));
    fixture.clock.0.fetch_add(32 * 24 * HOUR, SeqCst);
    assert_eq!((fixture.walk().earlier, fixture.versions().len()), (1, 1));
    // As a program from before has put it.
    fixture.put("b", 1, false);
    fixture.put("b", 2, false);
    let mut transaction = Transaction::new();
    transaction.set_modified(BUCKET, "b", long_ago);
    store.commit(transaction).unwrap();
    assert_eq!((fixture.walk().earlier, fixture.versions().len()), (0, 3));
}

#[test]
fn a_date_with_an_offset_is_the_same_moment_in_utc() {
    let fixture = Fixture::new();
    fixture.rules(
        "<Rule><Filter/><Status>Enabled</Status><Expiration><Date>2029-12-31T19:00:00-05:00</Date></Expiration></Rule>",
    );
    let mut walk = Walk::new(BUCKET.to_owned());
    // date -ud 2030-01-01 +%s
    assert_eq!(
        date_in(&walk.read(&fixture.store).unwrap()),
        1_893_456_000_000_000
    );
}

#[test]
fn a_date_that_was_kept_without_its_offset_does_not_act_early() {
    let at = |date: &str| {
        let document = format!(
            "<LifecycleConfiguration><Rule><Filter/><Status>Enabled</Status>\
             <Expiration><Date>{date}</Date></Expiration></Rule></LifecycleConfiguration>"
        );
        let bucket = CollectionInfo {
            name: BUCKET.to_owned(),
            hashed: None,
            created_micros: 0,
            attributes: [(LIFECYCLE.to_owned(), document.into_bytes())].into(),
        };
        date_in(&Rules::of(&bucket).unwrap())
    };
    // 2030-01-01T00:00:00Z, as sent with offsets of -05:00 and +01:00.
    assert_eq!(at("2029-12-31T19:00:00Z"), 1_893_456_000_000_000);
    assert_eq!(
        at("2030-01-01T01:00:00Z"),
        1_893_456_000_000_000 + 24 * HOUR
    );
    assert_eq!(at("2030-01-01T00:00:00Z"), 1_893_456_000_000_000);
}

/// When a current object expires.
fn date_in(rules: &Rules) -> u64 {
    let none = store::Attributes::new();
    let object = Object {
        size: 0,
        attributes: &none,
    };
    let fate = rules.fate(&Seen {
        key: "a",
        modified_micros: 0,
        what: What::Current(object),
    });
    fate.unwrap().at_micros
}

#[test]
fn where_no_rule_is_nothing_is_looked_at() {
    let fixture = Fixture::new();
    let rule = |prefix: &str| {
        format!(
            "<Rule><Filter><Prefix>{prefix}</Prefix></Filter><Status>Enabled</Status>\
             <Expiration><Days>1</Days></Expiration></Rule>"
        )
    };
    fixture.rules(&[rule("m/"), rule("c"), rule("m/1"), rule("x")].concat());
    for n in 0..8 * BATCH {
        for prefix in ["a", "d", "y"] {
            fixture.put(&format!("{prefix}{n}"), 1, false);
        }
    }
    for key in ["c", "c1", "m/", "m/1", "m/2"] {
        fixture.put(key, 1, false);
    }
    fixture.clock.0.fetch_add(48 * HOUR, SeqCst);
    let mut walk = Walk::new(BUCKET.to_owned());
    let now = fixture.clock.0.load(SeqCst);
    let mut steps = 1;
    while walk.step(&fixture.store, &fixture.locks, now).unwrap() {
        steps += 1;
    }
    // Of uploads, of "c", of "m/" twice, of "x".
    assert_eq!((walk.gone.objects, steps), (5, 5));
    assert_eq!(fixture.versions().len(), 24 * BATCH);
}

#[test]
fn a_version_that_cannot_be_removed_keeps_no_other() {
    let drive: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry()).unwrap());
    let fixture = Fixture::on(drive.clone());
    fixture.rules(
        "<Rule><Filter><Prefix>a</Prefix></Filter><Status>Enabled</Status><Expiration><Days>1</Days></Expiration>\
         </Rule><Rule><Filter><Prefix>b</Prefix></Filter><Status>Enabled</Status><Expiration><Days>1</Days>\
         </Expiration></Rule>",
    );
    for key in ["a1", "a3", "a4", "b"] {
        fixture.put(key, 50_000, false);
    }
    let mut clone = Transaction::new();
    clone.clone_object((BUCKET, "a3"), (BUCKET, "a2"));
    fixture.store.commit(clone).unwrap();
    fixture.put("a3", 50_000, false);
    let fixture = fixture.damaged(&drive);
    fixture.clock.0.fetch_add(48 * HOUR, SeqCst);
    let mut walk = Walk::new(BUCKET.to_owned());
    let now = fixture.clock.0.load(SeqCst);
    while walk.step(&fixture.store, &fixture.locks, now).unwrap() {}
    assert_eq!(walk.gone.objects, 4);
    let why = walk.failed.take().unwrap();
    assert_eq!(*why.code(), s3s::S3ErrorCode::InternalError);
    let left = fixture.versions().into_iter().map(|version| version.key);
    assert_eq!(left.collect::<Vec<_>>(), ["a2"]);
}

#[test]
fn a_damaged_record_ends_no_walk() {
    let drive: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry()).unwrap());
    let fixture = Fixture::on(drive.clone());
    fixture.rules(
        "<Rule><Prefix/><Status>Enabled</Status><Expiration><Days>1</Days></Expiration></Rule>",
    );
    for n in 0..2 * BATCH {
        fixture.put(&n.to_string(), 1, false);
    }
    let fixture = fixture.with_damaged_records(&drive, &["1"]);
    fixture.clock.0.fetch_add(48 * HOUR, SeqCst);
    let mut walk = Walk::new(BUCKET.to_owned());
    let now = fixture.clock.0.load(SeqCst);
    while walk.step(&fixture.store, &fixture.locks, now).unwrap() {}
    assert_eq!(walk.gone.objects, 2 * BATCH as u64 - 1);
    let why = walk.failed.take().unwrap();
    assert_eq!(*why.code(), s3s::S3ErrorCode::InternalError);
    let left = fixture.store.list_damaged(BUCKET, "", "", 9).unwrap();
    let left: Vec<_> = left.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(left, ["1"]);
}

#[test]
fn a_damaged_version_keeps_its_marker_and_no_others() {
    let drive: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry()).unwrap());
    let fixture = Fixture::on(drive.clone());
    let enabled = Versioning::Enabled;
    fixture.locks.set(&fixture.store, BUCKET, enabled).unwrap();
    fixture.rules(
        "<Rule><Filter/><Status>Enabled</Status>\
         <Expiration><ExpiredObjectDeleteMarker>true</ExpiredObjectDeleteMarker></Expiration>\
         <NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration></Rule>",
    );
    for key in ["k", "k", "k", "k", "m", "z", "z"] {
        fixture.put(key, 1, false);
    }
    fixture.delete("m");
    let ids: Vec<String> = fixture
        .versions()
        .into_iter()
        .map(|known| known.id)
        .collect();
    let [_, of_k, _, _, _, of_m, _, _] = &ids[..] else {
        panic!("{ids:?}");
    };
    let fixture = fixture.with_damaged_records(&drive, &[of_k, of_m]);
    fixture.clock.0.fetch_add(48 * HOUR, SeqCst);
    let gone = fixture.walk();
    assert_eq!((gone.earlier, gone.markers), (3, 0));
    let left = fixture.versions().into_iter();
    let left: Vec<_> = left.map(|known| (known.key, known.is_marker)).collect();
    let expected = [("k", false), ("m", true), ("z", false)];
    assert_eq!(
        left,
        expected.map(|(key, is_marker)| (key.to_owned(), is_marker))
    );
    let beside = fixture.store.list_damaged(&versions_of(BUCKET), "", "", 9);
    let damaged = beside
        .unwrap()
        .into_iter()
        .filter(|(_, info)| info.is_err());
    assert_eq!(damaged.count(), 2);
}

const UPLOADS_END: &str = "<Rule><Prefix>tmp/</Prefix><Status>Enabled</Status><AbortIncompleteMultipartUpload>\
     <DaysAfterInitiation>2</DaysAfterInitiation></AbortIncompleteMultipartUpload></Rule>";

fn begin_uploads(fixture: &Fixture) {
    for key in ["tmp/1", "tmp/2", "other"] {
        begin_upload(fixture, key);
    }
}

fn begin_upload(fixture: &Fixture, key: &str) {
    let upload = multipart::Upload {
        id: hex(key.as_bytes()),
        key: key.to_owned(),
        object: ObjectAttributes::default(),
        lock: Ok(Lock::default()),
        algorithm: None,
        full: false,
        initiated_micros: 0,
    };
    multipart::begin(&fixture.store, BUCKET, upload).unwrap();
}

#[test]
fn uploads_end_by_their_age() {
    let fixture = Fixture::new();
    fixture.rules(UPLOADS_END);
    begin_uploads(&fixture);
    assert_eq!(fixture.walk().uploads, 0);
    fixture.clock.0.fetch_add(72 * HOUR, SeqCst);
    assert_eq!(fixture.walk().uploads, 2);
    assert_eq!(fixture.walk().uploads, 0);
}

#[test]
fn uploads_end_in_batches() {
    let fixture = Fixture::new();
    fixture.rules(UPLOADS_END);
    for n in 0..=2 * UPLOADS {
        begin_upload(&fixture, &format!("tmp/{n}"));
    }
    fixture.clock.0.fetch_add(72 * HOUR, SeqCst);
    let now = fixture.clock.0.load(SeqCst);
    let mut walk = Walk::new(BUCKET.to_owned());
    for ended in [UPLOADS, 2 * UPLOADS, 2 * UPLOADS + 1] {
        assert!(walk.step(&fixture.store, &fixture.locks, now).unwrap());
        assert_eq!(walk.gone.uploads, ended as u64);
    }
}

#[test]
fn rules_that_cannot_be_read_remove_nothing() {
    let fixture = Fixture::new();
    fixture.put("a", 1, false);
    let keep = |attributes: &mut store::Attributes, _: &mut Transaction| {
        let cut = b"<LifecycleConfiguration><Rule><Expiration><Days>1</Days>".to_vec();
        attributes.insert(LIFECYCLE.to_owned(), cut);
        Ok(())
    };
    fixture
        .locks
        .change_bucket(&fixture.store, BUCKET, keep)
        .unwrap();
    fixture.clock.0.fetch_add(1000 * HOUR, SeqCst);
    let mut walk = Walk::new(BUCKET.to_owned());
    let now = fixture.clock.0.load(SeqCst);
    assert!(walk.step(&fixture.store, &fixture.locks, now).is_err());
    assert_eq!(fixture.versions().len(), 1);
}

#[test]
fn rules_that_are_withdrawn_remove_nothing_more() {
    let fixture = Fixture::new();
    let store = &fixture.store;
    let withdraw = || {
        let remove = |attributes: &mut store::Attributes, _: &mut Transaction| {
            attributes.remove(LIFECYCLE);
            Ok(())
        };
        fixture.locks.change_bucket(store, BUCKET, remove).unwrap();
    };
    for key in ["a", "b"] {
        fixture.put(key, 1, false);
    }
    fixture.rules(
        "<Rule><Prefix/><Status>Enabled</Status><Expiration><Days>1</Days></Expiration></Rule>",
    );
    let mut walk = Walk::new(BUCKET.to_owned());
    walk.read(store).unwrap();
    let (due, _) = walk.look(store, "", "", |_| true).unwrap();
    assert_eq!(due.len(), 2);
    withdraw();
    walk.remove(store, &fixture.locks, due).unwrap();
    assert_eq!((walk.gone, fixture.versions().len()), (Gone::default(), 2));
    // The rules of uploads go when the first of these has been found to be due.
    fixture.rules(UPLOADS_END);
    begin_uploads(&fixture);
    let mut walk = Walk::new(BUCKET.to_owned());
    walk.read(store).unwrap();
    let which = |_: &multipart::Upload| {
        withdraw();
        true
    };
    let (ended, _, done) = walk.end_uploads(store, &fixture.locks, String::new(), which);
    assert_eq!((ended, done.is_ok()), (0, true));
    let uploads = store.list(&uploads_of(BUCKET), "", "", 9).unwrap();
    assert_eq!(uploads.len(), 3);
}

#[test]
fn parts_of_an_upload_that_is_gone_go_too() {
    let fixture = Fixture::new();
    fixture.rules(UPLOADS_END);
    begin_uploads(&fixture);
    let (collection, id) = (uploads_of(BUCKET), hex(b"tmp/1"));
    let mut transaction = Transaction::new();
    transaction
        .remove(&collection, format!("{id}/meta"))
        .touch(&collection, format!("{id}/00001"));
    fixture.store.commit(transaction).unwrap();
    assert_eq!(fixture.walk().uploads, 0);
    let left = fixture.store.list(&collection, "", "", 9).unwrap();
    assert!(
        left.iter()
            .all(|info| info.name.text().unwrap().ends_with("/meta"))
    );
    assert_eq!(left.len(), 2);
}

#[test]
fn an_upload_with_a_damaged_part_keeps_no_other() {
    let drive: Arc<dyn ZonedDevice> = Arc::new(MemoryDrive::new(geometry()).unwrap());
    let fixture = Fixture::on(drive.clone());
    fixture.rules(UPLOADS_END);
    begin_uploads(&fixture);
    let (collection, part) = (uploads_of(BUCKET), hex(b"tmp/1") + "/00002");
    let data = written(&fixture.store, &[1; 50_000]);
    let mut parts = Transaction::new();
    parts
        .put(&collection, &part, data, store::Attributes::new())
        .clone_object((&collection, &part), (BUCKET, "copy"));
    for intact in ["/00001", "/00003"] {
        parts.touch(&collection, hex(b"tmp/1") + intact);
    }
    fixture.store.commit(parts).unwrap();
    let fixture = fixture.damaged(&drive);
    let left = || {
        let found = fixture.store.list(&collection, "", "", 9).unwrap();
        let names = found.into_iter().map(|info| info.name.to_string());
        names.collect::<Vec<_>>()
    };
    let expected = [hex(b"other") + "/meta", part];
    fixture.clock.0.fetch_add(72 * HOUR, SeqCst);
    let mut walk = Walk::new(BUCKET.to_owned());
    let now = fixture.clock.0.load(SeqCst);
    while walk.step(&fixture.store, &fixture.locks, now).unwrap() {}
    assert_eq!(walk.gone.uploads, 1);
    let why = walk.failed.take().unwrap();
    assert_eq!(*why.code(), s3s::S3ErrorCode::InternalError);
    assert_eq!(left(), expected);
    // Nor does it where the server starts.
    let mut parts = Transaction::new();
    parts.touch(&collection, hex(b"tmp/2") + "/00001");
    fixture.store.commit(parts).unwrap();
    assert!(multipart::sweep(&fixture.store).is_err());
    assert_eq!(left(), expected);
}

/// The number of objects that the audit log says have expired.
#[derive(Clone, Default)]
struct Told(Arc<AtomicU64>);

impl Visit for Told {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "objects" {
            self.0.fetch_add(value, SeqCst);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

impl Subscriber for Told {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == AUDIT
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn a_walk_that_is_given_up_tells_what_it_has_removed() {
    let fixture = Fixture::new();
    fixture.rules(
        "<Rule><Prefix/><Status>Enabled</Status><Expiration><Days>1</Days></Expiration></Rule>",
    );
    for n in 0..2 * BATCH {
        fixture.put(&n.to_string(), 1, false);
    }
    fixture.clock.0.fetch_add(48 * HOUR, SeqCst);
    let now = fixture.clock.0.load(SeqCst);
    let told = Told::default();
    tracing::subscriber::with_default(told.clone(), || {
        let mut walk = Walk::new(BUCKET.to_owned());
        while walk.gone == Gone::default() {
            assert!(walk.step(&fixture.store, &fixture.locks, now).unwrap());
        }
    });
    let left = fixture.versions().len();
    assert!(left > 0);
    assert_eq!(told.0.load(SeqCst), (2 * BATCH - left) as u64);
}
