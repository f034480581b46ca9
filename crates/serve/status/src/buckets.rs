//! Sizes of the buckets. The store keeps no such totals, so all objects are listed, in the background and only while
//! the status is requested.

use control::{StoreView, ViewError};
use parking_lot::Mutex;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use store::Store;

/// Least pause between two counts.
const PAUSE: Duration = Duration::from_secs(10);
/// The pause is also at least this many times the duration of a count.
const PAUSES: u32 = 20;
/// Without a request for so long, a count is ended.
const PATIENCE: Duration = Duration::from_secs(30);
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
    /// In order of their names.
    pub buckets: Vec<Bucket>,
}

#[derive(Default)]
struct State {
    asked: Option<Instant>,
    is_counting: bool,
    counted: Option<(Instant, Vec<Bucket>)>,
    due: Option<Instant>,
}

/// Counts the objects and bytes of all buckets.
#[derive(Default)]
pub(crate) struct Counter(Mutex<State>);

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
        let counted = state.counted.as_ref().map(|(at, buckets)| Buckets {
            age_seconds: at.elapsed().as_secs_f64(),
            buckets: buckets.clone(),
        });
        let is_due = !state.is_counting && state.due.is_none_or(|due| due <= now);
        state.is_counting |= is_due;
        (counted, is_due)
    }

    /// Counts all buckets, which may take long; call it on a thread that may block.
    pub(crate) fn count(&self, store: &Store) {
        let begin = Instant::now();
        let counted = self.counted(store);
        let mut state = self.0.lock();
        state.is_counting = false;
        state.due = Some(Instant::now() + PAUSE.max(begin.elapsed() * PAUSES));
        match counted {
            Ok(buckets) => state.counted = Some((Instant::now(), buckets)),
            Err(Ended::NobodyLooks) => state.due = None,
            Err(Ended::Failed(error)) => tracing::debug!(%error, "buckets were not counted"),
        }
    }

    fn counted(&self, store: &Store) -> Result<Vec<Bucket>, Ended> {
        let view = StoreView::Here(store.clone());
        let mut buckets = BTreeMap::<String, (u64, u64)>::new();
        for collection in view.collections()? {
            if collection.name.starts_with(UPLOADS) {
                continue;
            }
            let (mut objects, mut bytes) = (0u64, 0);
            view.for_each_object(&collection.name, b"", |object| {
                objects += 1;
                bytes += object.size;
                if objects % 1024 == 0 && self.is_forgotten() {
                    return Err(Ended::NobodyLooks);
                }
                Ok(())
            })?;
            let name = collection.name.strip_prefix(VERSIONS);
            let name = name.map_or(collection.name.clone(), str::to_owned);
            let bucket = buckets.entry(name).or_default();
            *bucket = (bucket.0 + objects, bucket.1 + bytes);
        }
        let bucket = |(name, (objects, bytes))| Bucket {
            name,
            objects,
            bytes,
        };
        Ok(buckets.into_iter().map(bucket).collect())
    }

    fn is_forgotten(&self) -> bool {
        let asked = self.0.lock().asked;
        asked.is_none_or(|asked| asked.elapsed() > PATIENCE)
    }
}
