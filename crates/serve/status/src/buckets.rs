//! Sizes of the buckets. The store keeps no such totals, so all objects are listed, in the background and only while
//! the status is requested.

use control::{StoreView, ViewError};
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use store::Store;

/// Least pause between two counts.
const PAUSE: Duration = Duration::from_secs(10);
/// The pause is also at least this many times the duration of a count; once its duration if the count was given up, which
/// leaves nothing to show.
const PAUSES: u32 = 20;
/// Without a request for so long, a count is ended; programs that collect metrics ask every minute or two.
const PATIENCE: Duration = Duration::from_secs(300);
/// Prefix of the collections with buckets' unfinished uploads, which do not count.
const UPLOADS: &str = ".uploads/";
/// Prefix of the collections with earlier versions, which count as objects of their buckets.
const VERSIONS: &str = ".versions/";

/// Size of a bucket.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Bucket {
    /// Its name.
    pub name: String,
    /// Number of objects, with earlier versions.
    pub objects: u64,
    /// Bytes of these objects.
    pub bytes: u64,
}

/// Sizes of all buckets, from the last count.
#[derive(Clone, Debug, Serialize)]
pub struct Buckets {
    /// Time since that count ended.
    pub age_seconds: f64,
    #[serde(flatten)]
    sizes: Sizes,
}

/// What a count found, in order of the buckets' names.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
struct Sizes {
    buckets: Vec<Bucket>,
    /// Names of buckets that could not be listed.
    not_counted: Vec<String>,
}

#[derive(Default)]
struct State {
    asked: Option<Instant>,
    /// Nothing is counted any more, because the server ends.
    is_closed: bool,
    is_counting: bool,
    counted: Option<(Instant, Sizes)>,
    due: Option<Instant>,
}

/// Counts the objects and bytes of all buckets.
#[derive(Default)]
pub(crate) struct Counter(Mutex<State>);

/// A count under way, when it began, and how many times its duration the pause behind it lasts. It ends where the count
/// panics, too: else no other would begin.
struct Turn<'a>(&'a Mutex<State>, Instant, u32);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_counting = false;
        state.due = Some(Instant::now() + PAUSE.max(self.1.elapsed() * self.2));
    }
}

/// Why a count ended early.
enum Ended {
    NobodyLooks,
    Failed(ViewError),
}

impl From<ViewError> for Ended {
    fn from(error: ViewError) -> Self {
        Self::Failed(error)
    }
}

impl Counter {
    /// The last count, and whether the caller has to run [`count`](Self::count) now.
    pub(crate) fn ask(&self) -> (Option<Buckets>, bool) {
        let (mut state, now) = (self.0.lock(), Instant::now());
        state.asked = Some(now);
        let counted = state.counted.as_ref().map(|(at, sizes)| Buckets {
            age_seconds: at.elapsed().as_secs_f64(),
            sizes: sizes.clone(),
        });
        let is_free = !state.is_counting && !state.is_closed;
        let is_due = is_free && state.due.is_none_or(|due| due <= now);
        state.is_counting |= is_due;
        (counted, is_due)
    }

    /// Ends a count that is under way, and begins no other.
    pub(crate) fn close(&self) {
        self.0.lock().is_closed = true;
    }

    /// Counts all buckets, which may take long; call it on a thread that may block.
    pub(crate) fn count(&self, store: &Store) {
        self.run(Instant::now(), || {
            let view = StoreView::Here(store.clone());
            let names = view.collections()?.into_iter().map(|of| of.name);
            self.sizes(names, |name, each| {
                view.for_each_object(name, b"", |object| each(object.size))?;
                Ok(())
            })
        });
    }

    fn run(&self, begun: Instant, count: impl FnOnce() -> Result<Sizes, Ended>) {
        let mut turn = Turn(&self.0, begun, PAUSES);
        let counted = count();
        if matches!(counted, Err(Ended::NobodyLooks)) {
            turn.2 = 1;
        }
        drop(turn);
        let mut state = self.0.lock();
        match counted {
            Ok(sizes) => state.counted = Some((Instant::now(), sizes)),
            Err(Ended::NobodyLooks) => {}
            Err(Ended::Failed(error)) => tracing::warn!(%error, "buckets were not counted"),
        }
    }

    /// Counts these collections; `list` passes the bytes of each object of one. One that has been removed meanwhile is
    /// left out.
    fn sizes(
        &self,
        collections: impl Iterator<Item = String>,
        list: impl Fn(&str, &mut dyn FnMut(u64) -> Result<(), Ended>) -> Result<(), Ended>,
    ) -> Result<Sizes, Ended> {
        let mut buckets = BTreeMap::<String, (u64, u64)>::new();
        let mut failed = BTreeSet::new();
        for collection in collections.filter(|name| !name.starts_with(UPLOADS)) {
            if self.is_forgotten() {
                return Err(Ended::NobodyLooks);
            }
            let (mut objects, mut bytes) = (0u64, 0);
            let listed = list(&collection, &mut |size| {
                objects += 1;
                bytes += size;
                if objects % 1024 == 0 && self.is_forgotten() {
                    return Err(Ended::NobodyLooks);
                }
                Ok(())
            });
            let name = collection.strip_prefix(VERSIONS).unwrap_or(&collection);
            match listed {
                Ok(()) => {}
                Err(Ended::NobodyLooks) => return Err(Ended::NobodyLooks),
                Err(Ended::Failed(ViewError::Store(store::Error::NoCollection { .. }))) => continue,
                Err(Ended::Failed(error)) => {
                    tracing::warn!(%error, collection, "a bucket was not counted");
                    failed.insert(name.to_owned());
                }
            }
            let bucket = buckets.entry(name.to_owned()).or_default();
            *bucket = (bucket.0 + objects, bucket.1 + bytes);
        }
        buckets.retain(|name, _| !failed.contains(name));
        let bucket = |(name, (objects, bytes))| Bucket {
            name,
            objects,
            bytes,
        };
        Ok(Sizes {
            buckets: buckets.into_iter().map(bucket).collect(),
            not_counted: failed.into_iter().collect(),
        })
    }

    fn is_forgotten(&self) -> bool {
        let state = self.0.lock();
        let is_old = |asked: Instant| asked.elapsed() > PATIENCE;
        state.is_closed || state.asked.is_none_or(is_old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_bucket_that_cannot_be_listed_leaves_the_others_counted() {
        let names = ["a", "broken", "removed", "z", ".versions/a", ".versions/z"];
        let counter = Counter::default();
        assert!(counter.ask().1);
        let sizes = counter.sizes(names.map(str::to_owned).into_iter(), |name, each| {
            each(10)?;
            Err(Ended::Failed(ViewError::Store(match name {
                "removed" => store::Error::NoCollection {
                    collection: name.to_owned(),
                },
                "broken" | ".versions/z" => store::Error::ReadOnly,
                _ => return Ok(()),
            })))
        });
        let Ok(sizes) = sizes else {
            panic!("the others can be listed")
        };
        let a = Bucket {
            name: "a".to_owned(),
            objects: 2,
            bytes: 20,
        };
        assert_eq!(sizes.buckets, [a]);
        assert_eq!(sizes.not_counted, ["broken", "z"]);
    }

    /// Else each look would begin another one, and a large store would always be counted.
    #[test]
    fn a_count_that_nobody_waits_for_is_followed_by_a_pause() {
        let counter = Counter::default();
        assert!(counter.ask().1);
        counter.run(Instant::now(), || Err(Ended::NobodyLooks));
        assert!(!counter.ask().1);
    }

    /// Else a store whose count takes longer than the patience had no sizes for hours after one look too few.
    #[test]
    fn only_a_count_that_shows_something_is_followed_by_many_times_its_duration() {
        let counted: [fn() -> Result<Sizes, Ended>; 2] =
            [|| Ok(Sizes::default()), || Err(Ended::NobodyLooks)];
        let pauses = counted.map(|count| {
            let counter = Counter::default();
            let begun = Instant::now() - Duration::from_secs(1000);
            counter.run(begun, count);
            let due = counter.0.lock().due.unwrap();
            due - begun
        });
        assert!(pauses[1] >= Duration::from_secs(2000));
        assert!(pauses[0] >= Duration::from_secs(21_000) && pauses[1] < pauses[0] / 4);
    }

    /// Else the server would wait for the count of a large store until whoever stops it kills it.
    #[test]
    fn the_end_of_the_server_ends_a_count() {
        for objects in [1, 1024] {
            let counter = Counter::default();
            assert!(counter.ask().1);
            let listed = Mutex::new(0);
            let names = ["a", "b"].map(str::to_owned).into_iter();
            let sizes = counter.sizes(names, |_, each| {
                counter.close();
                *listed.lock() += 1;
                (0..objects).try_for_each(|_| each(1))?;
                assert!(objects < 1024, "nothing ends a long bucket");
                Ok(())
            });
            assert!(matches!(sizes, Err(Ended::NobodyLooks)));
            assert_eq!(*listed.lock(), 1);
            counter.run(Instant::now(), || sizes);
            counter.0.lock().due = None;
            assert!(!counter.ask().1, "no other begins");
        }
    }

    #[test]
    fn a_count_that_panics_is_not_the_last_one() {
        let counter = Counter::default();
        assert!(counter.ask().1);
        assert!(!counter.ask().1, "one is under way");
        let ended = catch_unwind(AssertUnwindSafe(|| {
            counter.run(Instant::now(), || panic!("broken"));
        }));
        assert!(ended.is_err());
        let state = counter.0.lock();
        assert!(!state.is_counting && state.due.is_some());
    }
}
