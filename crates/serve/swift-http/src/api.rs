//! The wire types: JSON. Names of files are Swift's own, timestamps in Swift's internal form.

use serde::{Deserialize, Serialize, Serializer};
use std::fmt::Display;
use swift_drive::{FragmentHashes, PolicyKind};

/// Most bytes of a file's metadata: below what the store takes as attributes.
pub const MAX_METADATA_BYTES: u64 = 1_000_000;
/// Most bytes of data in an answer to [`Open`].
pub const MAX_FIRST_BYTES: u64 = 1 << 20;
/// Most partitions or objects of one answer, and how many there are if nothing is said.
pub const MAX_LISTED: usize = 10_000;
pub const LISTED: usize = 1000;
/// Most bytes of data that can be announced.
pub const MAX_DATA_BYTES: u64 = 1 << 40;

/// A policy that the drive has.
#[derive(Serialize)]
pub struct Policy {
    pub policy: u32,
    pub kind: Kind,
}

/// What a policy is to be.
#[derive(Deserialize)]
pub struct NewPolicy {
    pub kind: Kind,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Replication,
    ErasureCoding,
}

impl From<Kind> for PolicyKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Replication => Self::Replication,
            Kind::ErasureCoding => Self::ErasureCoding,
        }
    }
}

impl From<PolicyKind> for Kind {
    fn from(kind: PolicyKind) -> Self {
        match kind {
            PolicyKind::Replication => Self::Replication,
            PolicyKind::ErasureCoding => Self::ErasureCoding,
        }
    }
}

/// What is known of data that is staged: all of it may be left out.
#[derive(Deserialize)]
pub struct Staging {
    /// Bytes to come.
    pub size: Option<u64>,
    /// Of the object that it will be of.
    pub policy: Option<u32>,
    /// Of the object that it will be of.
    pub hash: Option<String>,
}

/// Data on the drive that no object has yet.
#[derive(Serialize)]
pub struct Staged {
    pub staged: String,
    pub size: u64,
    /// Hexadecimal digits.
    pub md5: String,
}

/// Where the data of a file comes from: the body behind the metadata, or what was staged.
#[derive(Deserialize)]
pub struct Putting {
    pub metadata_bytes: Option<u64>,
    pub staged: Option<String>,
}

/// Which files a removal leaves.
#[derive(Deserialize)]
pub struct Purging {
    /// Seconds since it was written; all of them if nothing is said.
    pub older_than: Option<f64>,
}

/// What a put came to.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Put {
    Done,
    /// Files there are newer; nothing was changed.
    Obsolete,
}

#[derive(Serialize)]
pub struct PutAnswer {
    pub put: Put,
}

/// Nothing to say but that it was done.
#[derive(Serialize)]
pub struct Done {}

/// The files of one object.
#[derive(Serialize)]
pub struct Files {
    pub files: Vec<String>,
}

/// How an object is opened.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Open {
    /// Bytes of the data to answer at once.
    pub first_bytes: u64,
    /// Whether the data behind them is going to be read.
    pub hold: bool,
    /// This fragment.
    pub frag_index: Option<u32>,
    /// A fragment need not be durable, and rather these.
    pub frag_prefs: Option<Vec<FragmentPreference>>,
}

#[derive(Deserialize)]
pub struct FragmentPreference {
    pub timestamp: String,
    #[serde(default)]
    pub exclude: Vec<u32>,
}

/// An object that was opened: the first frame of the answer. One with the metadata of each file of `metadata`
/// follows, then one with the first bytes of the data.
#[derive(Serialize)]
pub struct Head {
    pub files: Vec<String>,
    pub data: Option<String>,
    pub meta: Option<String>,
    pub content_type: Option<String>,
    pub tombstone: Option<String>,
    /// Timestamp of the newest durable fragments.
    pub durable: Option<String>,
    pub size: Option<u64>,
    /// To read the data behind its first bytes.
    pub opened: Option<String>,
    pub metadata: Vec<&'static str>,
}

#[derive(Deserialize)]
pub struct Reading {
    /// The data is not read again.
    #[serde(default)]
    pub close: bool,
}

#[derive(Deserialize)]
pub struct Partitions {
    #[serde(default)]
    pub from: u32,
    pub limit: Option<usize>,
}

#[derive(Deserialize)]
pub struct Limit {
    pub limit: Option<usize>,
}

/// An object of a suffix.
#[derive(Serialize)]
pub struct Object {
    pub hash: String,
    pub files: Vec<String>,
}

/// An object that was put aside.
#[derive(Serialize)]
pub struct Quarantined {
    pub partition: u32,
    pub hash: String,
    pub files: Vec<String>,
}

/// Which suffixes to hash again whatever is known of them, and what is too old to be kept, in seconds.
#[derive(Deserialize)]
#[serde(default)]
pub struct Hashing {
    pub recalculate: Vec<String>,
    pub reclaim_age: f64,
    pub commit_window: f64,
}

impl Default for Hashing {
    /// Swift's.
    fn default() -> Self {
        Self {
            recalculate: Vec::new(),
            reclaim_age: 7.0 * 24.0 * 3600.0,
            commit_window: 60.0,
        }
    }
}

/// Hashes by suffix, then by fragment; `-` is what is no fragment's.
#[derive(Serialize)]
pub struct Hashes {
    pub computed: usize,
    #[serde(serialize_with = "by_suffix")]
    pub hashes: swift_drive::Hashes,
}

/// There are thousands: none is copied for it.
fn by_suffix<S: Serializer>(hashes: &swift_drive::Hashes, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(
        hashes
            .iter()
            .map(|(suffix, hash)| (Named(suffix), ByFragment(hash))),
    )
}

/// What goes by its name.
struct Named<T>(T);

impl<T: Display> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

struct ByFragment<'a>(&'a FragmentHashes);

impl Serialize for ByFragment<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let whole: &dyn Display = &"-";
        to.collect_map(self.0.iter().map(|(of, hash)| {
            let of = of.as_ref().map_or(whole, |index| index as &dyn Display);
            (Named(of), hash)
        }))
    }
}
