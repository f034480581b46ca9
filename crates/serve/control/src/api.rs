//! The wire types of the control socket: JSON under `/v1`, errors too. `GET /` says which versions there are.
//!
//! | call | answers |
//! |---|---|
//! | `GET /` | [`Hello`] |
//! | `GET /v1/drive` | [`DriveDescription`] |
//! | `GET /v1/drive/zones?first=&count=` | a list of zones, see [`MAX_ZONES`] |
//! | `GET /v1/store/space` | `store::Statfs` |
//! | `GET /v1/store/caches` | `store::Caches`, since the server's start |
//! | `GET /v1/store/waiting` | a list of `store::Waiting`: what the drive has not answered; waits for nothing |
//! | `GET /v1/store/health` | `store::Health` |
//! | `GET /v1/store/status` | what the status page shows (docs/status-page.md); not known where there is none |
//! | `GET /v1/store/zones?first=&count=` | a list of `store::ZoneUse`, see [`MAX_ZONES`] |
//! | `GET /v1/store/collections` | a list of [`Collection`] |
//! | `GET /v1/store/objects?collection=&prefix=&from=&limit=` | a list of [`Object`], see [`MAX_OBJECTS`] |
//! | `GET /v1/store/cleaner` | `store::CleanerStatus` |
//! | `POST /v1/store/cleaner` with an [`Order`] | [`Cleaned`] |
//! | `POST /v1/store/cleaner/turn` with a `store::ClusterTurn` | `store::CleanerStatus` |
//! | `POST /v1/store/backup` with a [`Backup`] | the archive in frames, then a `Result` of `archive::Packed` or [`Problem`] |
//! | `GET /v1/store/scrub` | `store::ScrubStatus` |
//! | `POST /v1/store/scrub` with a [`Scrub`] | `store::ScrubStatus` |

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use store::Name;
use zone::Geometry;

/// The version that this program speaks.
pub const API_VERSION: u32 = 1;
/// How a server names itself in [`Hello`].
pub const SERVICE: &str = "zonestore";
/// Serves a store by S3.
pub const SERVE: &str = "zonestore serve";
/// Serves stores to OpenStack Swift.
pub const DAEMON: &str = "zonestore daemon";
/// Most zones of one answer.
pub const MAX_ZONES: u32 = 4096;
/// Most objects of one answer.
pub const MAX_OBJECTS: usize = 1000;
/// Most bytes of a request's body.
pub const MAX_REQUEST_BYTES: usize = 16 << 10;

/// Who serves.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// [`SERVICE`].
    pub service: String,
    /// The versions it speaks.
    pub api_versions: Vec<u32>,
    /// Its program's version.
    pub program_version: String,
    /// Its process.
    pub pid: u32,
    /// The command that it runs, such as `zonestore serve`.
    #[serde(default = "serve")]
    pub command: String,
}

/// What runs where nobody says so.
fn serve() -> String {
    SERVE.to_owned()
}

/// What a drive is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DriveDescription {
    /// The profile it was made from.
    pub profile: String,
    /// What distinguishes it from all others.
    pub uuid: String,
    /// Its shape.
    pub geometry: Geometry,
    /// Bytes that its file takes on the host.
    pub host_bytes: u64,
}

/// Which zones; of the store's, those with these numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Zones {
    /// The first.
    pub first: u32,
    /// How many at most.
    pub count: u32,
}

/// Which objects.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Objects {
    /// Of this collection.
    pub collection: String,
    /// Whose names begin so.
    pub prefix: String,
    /// From this name on.
    pub from: String,
    /// The prefix in hexadecimal digits, if it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix_hex: Option<String>,
    /// The name in hexadecimal digits, if it is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_hex: Option<String>,
    /// How many at most.
    pub limit: usize,
}

impl Objects {
    /// At most `limit` objects with this prefix from a name on.
    pub fn new(collection: &str, prefix: &Name, from: &Name, limit: usize) -> Self {
        let text = |name: &Name| name.text().unwrap_or_default().to_owned();
        let hex = |name: &Name| name.text().is_none().then(|| name.hex());
        Self {
            collection: collection.to_owned(),
            prefix: text(prefix),
            from: text(from),
            prefix_hex: hex(prefix),
            from_hex: hex(from),
            limit,
        }
    }

    /// Prefix and first name; `None` if the digits are none.
    pub fn names(&self) -> Option<(Name, Name)> {
        let name = |text: &String, hex: &Option<String>| match hex {
            Some(digits) => Name::from_hex(digits),
            None => Some(Name::from(text)),
        };
        name(&self.prefix, &self.prefix_hex).zip(name(&self.from, &self.from_hex))
    }
}

/// A collection.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Collection {
    /// Its name.
    pub name: String,
    /// When it was made, Unix time in microseconds.
    pub created_micros: u64,
    /// What makes it one by hash; `null`: its objects are in order of their names.
    pub hashed: Option<store::Hashed>,
}

impl Collection {
    /// What it is, in words.
    pub fn kind(&self) -> String {
        let hashed = self.hashed.map(|hashed| hashed.to_string());
        hashed.unwrap_or_else(|| "by name".to_owned())
    }
}

impl From<store::CollectionInfo> for Collection {
    fn from(collection: store::CollectionInfo) -> Self {
        Self {
            name: collection.name,
            created_micros: collection.created_micros,
            hashed: collection.hashed,
        }
    }
}

/// An object.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Object {
    /// Its name: a string, or `{"hex": "…"}` if it is no text.
    pub name: Name,
    /// Bytes of data.
    pub size: u64,
    /// When its data last changed, Unix time in microseconds.
    pub modified_micros: u64,
}

impl From<store::ObjectInfo> for Object {
    fn from(object: store::ObjectInfo) -> Self {
        Self {
            name: object.name,
            size: object.size,
            modified_micros: object.modified_micros,
        }
    }
}

/// What the cleaner is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Clean everything, in the background.
    Start,
    /// Stop behind what is being copied, and end all jobs; do not begin by itself until started.
    Stop,
    /// Clean one zone before answering, for [`Order::job`].
    One,
    /// Leave the zones that data goes to, so that they can be cleaned too.
    Seal,
}

/// An order to the cleaner.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Order {
    /// What to do.
    pub action: Action,
    /// The job that a zone is cleaned for, out of an earlier status; without it, one that begins now.
    #[serde(default)]
    pub job: Option<store::CleaningJob>,
}

/// What became of an order.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cleaned {
    /// What was cleaned before this answer, for [`Action::One`].
    #[serde(flatten)]
    pub step: store::CleaningStep,
    /// The cleaner now.
    pub status: store::CleanerStatus,
}

/// What the scrub is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scrub {
    /// Look at all metadata, in the background.
    Metadata,
    /// And at all data.
    Data,
    /// Stop behind the piece in hand; do not begin by itself until asked.
    Stop,
}

/// A backup to be made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Backup {
    /// The backup that it builds on: a file that the server can read.
    pub since: Option<PathBuf>,
    /// When it is made, Unix time in microseconds.
    pub now_micros: u64,
    /// Go on without what cannot be read, and name it.
    pub skip_damaged: bool,
}

/// What kind of error it is: what the caller can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// There is no such collection or object.
    NotFound,
    /// There is no such call; the other side may be older.
    UnknownCall,
    /// The call does not make sense.
    Invalid,
    /// The request is larger than [`MAX_REQUEST_BYTES`].
    TooLarge,
    /// The drive is full.
    NoSpace,
    /// Data or metadata is damaged.
    Damaged,
    /// The server is about to stop.
    Stopping,
    /// The moment of a backup was given up for what is written.
    GivenUp,
    /// The daemon has no such drive.
    NoDrive,
    /// The drive has no such storage policy.
    NoPolicy,
    /// The storage policy is of another kind.
    OtherPolicy,
    /// What was staged or opened is not there any more.
    Gone,
    /// Too much is held for clients at the moment.
    Busy,
    /// Anything else; also kinds that are newer than this program.
    #[serde(other)]
    Failed,
}

/// An error as it is sent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Problem {
    /// Its kind.
    pub kind: Kind,
    /// One line for people.
    pub message: String,
}
