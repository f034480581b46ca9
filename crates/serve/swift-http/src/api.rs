//! The wire types, in JSON. File names are Swift's own, timestamps in Swift's internal form.

use control::api::Problem;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt::Display;
use swift_drive::PolicyKind;
use swift_files::FragmentHashes;

/// Most bytes of a file's metadata, below the store's limit of attributes.
pub const MAX_METADATA_BYTES: u64 = 1_000_000;
/// Most bytes of data in an answer to [`Open`].
pub const MAX_FIRST_BYTES: u64 = 1 << 20;
/// Most partitions or objects in one answer, and their number if the request gives none.
pub const MAX_LISTED: usize = 10_000;
pub const LISTED: usize = 1000;
/// Most bytes of data that a request may announce.
pub const MAX_DATA_BYTES: u64 = 1 << 40;

/// A policy that the drive has.
#[derive(Serialize)]
pub struct Policy {
    pub policy: u32,
    pub kind: Kind,
}

/// Request to add a policy.
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

/// Query of a request that stages data; all fields are optional.
#[derive(Deserialize)]
pub struct Staging {
    /// Bytes of data to come.
    pub size: Option<u64>,
    /// Policy of the future object.
    pub policy: Option<u32>,
    /// Hash of the future object.
    pub hash: Option<String>,
}

/// Staged data: written to the drive, but not part of an object yet.
#[derive(Serialize)]
pub struct Staged {
    pub staged: String,
    pub size: u64,
    /// MD5 in hexadecimal digits.
    pub md5: String,
}

/// Source of a file's data: the body after the metadata, or data that was staged.
#[derive(Deserialize)]
pub struct Putting {
    pub metadata_bytes: Option<u64>,
    pub staged: Option<String>,
}

/// Body of a request that removes files of an object together.
#[derive(Deserialize)]
pub struct Removing {
    pub files: Vec<String>,
    /// Least age of each in seconds; any age if not given.
    pub older_than: Option<Age>,
    /// Whether metadata may be left without data.
    #[serde(default)]
    pub leaves_metadata: bool,
}

/// Whether they were removed.
#[derive(Serialize)]
pub struct Removed {
    pub removed: bool,
}

/// Outcome of a put.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Put {
    Done,
    /// Existing files are newer; nothing was changed.
    Obsolete,
}

#[derive(Serialize)]
pub struct PutAnswer {
    pub put: Put,
}

/// An empty answer to a request that was carried out.
#[derive(Serialize)]
pub struct Done {}

/// The files of one object.
#[derive(Serialize)]
pub struct Files {
    pub files: Vec<String>,
}

/// Body of a request that opens an object.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Open {
    /// Data of at most so many bytes is in the answer.
    pub first_bytes: u64,
    /// Whether longer data will be read.
    pub hold: bool,
    /// Index of the fragment to open.
    pub frag_index: Option<u32>,
    /// Preferred fragments; with them, a fragment need not be durable.
    pub frag_prefs: Option<Vec<FragmentPreference>>,
}

#[derive(Deserialize)]
pub struct FragmentPreference {
    pub timestamp: String,
    #[serde(default)]
    pub exclude: Vec<u32>,
}

/// An opened object: the first frame of the answer. One frame for each entry of `metadata` follows, then one with the
/// data, empty if it is longer than was asked for.
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
    /// Id for reading data that is not in the answer.
    pub opened: Option<String>,
    pub metadata: Vec<&'static str>,
}

#[derive(Deserialize)]
pub struct Reading {
    /// Whether this is the last read, which closes the handle.
    #[serde(default)]
    pub close: bool,
}

/// Message with a socket that opened data is to be sent into; it closes the handle.
#[derive(Deserialize)]
pub struct Send {
    pub opened: String,
}

/// Bytes that a socket took: fewer than asked for if it takes no more.
#[derive(Serialize)]
pub struct Sent {
    pub sent: u64,
}

/// First line of a message with a socket that data is to be received from. The rest of the message is the beginning of the data.
#[derive(Deserialize)]
pub struct Receive {
    /// Bytes to take from the socket.
    pub bytes: u64,
    pub policy: Option<u32>,
    pub hash: Option<String>,
}

/// Bytes that have been taken from a socket so far.
#[derive(Serialize)]
pub struct Passed {
    pub passed: u64,
    /// Whether the drive is waited for, and not the socket.
    pub busy: bool,
}

/// Why data was not received, and how many bytes were taken from the socket.
#[derive(Serialize)]
pub struct NotReceived<'a> {
    pub passed: u64,
    #[serde(flatten)]
    pub problem: &'a Problem,
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

/// Body of a request that puts an object aside.
#[derive(Deserialize)]
pub struct Quarantining {
    /// The file in which something is wrong; the object stays if it has no such file any more.
    pub file: Option<String>,
}

/// A quarantined object.
#[derive(Serialize)]
pub struct Quarantined {
    pub partition: u32,
    pub hash: String,
    pub files: Vec<String>,
}

/// Number of quarantined files that were removed.
#[derive(Serialize)]
pub struct Emptied {
    pub files: u64,
}

/// An age in seconds; one below zero would make files old that are not.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "f64")]
pub struct Age(pub f64);

impl TryFrom<f64> for Age {
    type Error = String;

    fn try_from(seconds: f64) -> Result<Self, String> {
        match seconds >= 0.0 && seconds.is_finite() {
            true => Ok(Self(seconds)),
            false => Err(format!("{seconds} is no age in seconds")),
        }
    }
}

/// Suffixes to hash again in any case, and ages beyond which files are removed.
#[derive(Deserialize)]
#[serde(default)]
pub struct Hashing {
    pub recalculate: Vec<String>,
    pub reclaim_age: Age,
    pub commit_window: Age,
}

impl Default for Hashing {
    /// Swift's own defaults.
    fn default() -> Self {
        Self {
            recalculate: Vec::new(),
            reclaim_age: Age(7.0 * 24.0 * 3600.0),
            commit_window: Age(60.0),
        }
    }
}

/// Hashes by suffix, then by fragment index; `-` for files that belong to no fragment.
#[derive(Serialize)]
pub struct Hashes {
    pub computed: usize,
    #[serde(serialize_with = "by_suffix")]
    pub hashes: swift_drive::Hashes,
}

/// Serialises thousands of hashes without copying them.
fn by_suffix<S: Serializer>(hashes: &swift_drive::Hashes, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(
        hashes
            .iter()
            .map(|(suffix, hash)| (Named(suffix), ByFragment(hash))),
    )
}

/// Serialises a value as its text.
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
            (Named(of), hash.as_str())
        }))
    }
}
