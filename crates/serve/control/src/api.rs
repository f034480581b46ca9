//! The wire types of the control socket: JSON under `/v1`, also for errors. `GET /` lists the server's versions.
//!
//! | call | answers |
//! |---|---|
//! | `GET /` | [`Hello`] |
//! | `GET /v1/drive` | [`DriveDescription`] |
//! | `GET /v1/drive/zones?first=&count=` | a list of zones, see [`MAX_ZONES`] |
//! | `GET /v1/store/space` | `store::Statfs` |
//! | `GET /v1/store/caches` | `store::Caches`, since the server's start |
//! | `GET /v1/store/waiting` | a list of `store::Waiting`: requests that the drive has not answered; never blocks |
//! | `GET /v1/store/health?recent=` | `store::Health`, see [`HealthOf`] |
//! | `GET /v1/store/status` | content of the status page (docs/status-page.md); an unknown call without such a page |
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

/// The interface version that this program speaks.
pub const API_VERSION: u32 = 1;
/// Value of [`Hello::service`].
pub const SERVICE: &str = "zonestore";
/// Command that serves a store by S3; a value of [`Hello::command`].
pub const SERVE: &str = "zonestore serve";
/// Command that serves stores to OpenStack Swift; a value of [`Hello::command`].
pub const DAEMON: &str = "zonestore daemon";
/// Most zones of one answer.
pub const MAX_ZONES: u32 = 4096;
/// Most objects of one answer.
pub const MAX_OBJECTS: usize = 1000;
/// Most bytes of a request's body.
pub const MAX_REQUEST_BYTES: usize = 16 << 10;

/// Answer to `GET /`: identifies the server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// Always [`SERVICE`].
    pub service: String,
    /// Interface versions that the server speaks.
    pub api_versions: Vec<u32>,
    /// Version of the server's program.
    pub program_version: String,
    /// Process id of the server.
    pub pid: u32,
    /// Command that the process runs, such as `zonestore serve`.
    #[serde(default = "serve")]
    pub command: String,
}

/// Value of [`Hello::command`] if a server does not send it.
fn serve() -> String {
    SERVE.to_owned()
}

/// Answer to `GET /v1/drive`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DriveDescription {
    /// Name of the profile that the drive was made from.
    pub profile: String,
    /// Unique identity of the drive.
    pub uuid: String,
    /// Number, size and kinds of its zones.
    pub geometry: Geometry,
    /// Bytes that its file takes on the host.
    pub host_bytes: u64,
}

/// A range of zone numbers; of the store's zones, those with object data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Zones {
    /// Number of the first zone.
    pub first: u32,
    /// Length of the range, at most [`MAX_ZONES`].
    pub count: u32,
}

/// Query of `GET /v1/store/health`.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct HealthOf {
    /// Whether names and numbers of objects may be those of an earlier call. On a large drive with damage the search for
    /// them takes long; a client that asks every few seconds would keep it going all the time.
    #[serde(default)]
    pub recent: bool,
}

/// Query of `GET /v1/store/objects`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Objects {
    /// Name of the collection to list.
    pub collection: String,
    /// Only objects whose names begin with this.
    pub prefix: String,
    /// The first name to list.
    pub from: String,
    /// The prefix in hexadecimal digits, if it is not text; used in place of `prefix`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix_hex: Option<String>,
    /// The first name in hexadecimal digits, if it is not text; used in place of `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_hex: Option<String>,
    /// Most objects in the answer, at most [`MAX_OBJECTS`].
    pub limit: usize,
}

impl Objects {
    /// Lists at most `limit` objects that begin with `prefix`, from the name `from` on.
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

    /// The prefix and the first name; `None` if a field that should be hexadecimal is not.
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
    /// How names are hashed; `null` if the collection is ordered by name.
    pub hashed: Option<store::Hashed>,
}

impl Collection {
    /// The collection's order in words, such as "by name".
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
    /// A string, or `{"hex": "…"}` if the name is not text.
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

/// What an [`Order`] tells the cleaner to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Clean all zones with dead bytes, in the background.
    Start,
    /// Stop after the current copy and end all jobs; the cleaner stays off until [`Self::Start`].
    Stop,
    /// Clean one zone before the answer, for [`Order::job`].
    One,
    /// Seal the zones that are being written, so that they can be cleaned too.
    Seal,
}

/// An order to the cleaner.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Order {
    /// The action to take.
    pub action: Action,
    /// The job that a zone is cleaned for, from an earlier status; without it, a job that begins now.
    #[serde(default)]
    pub job: Option<store::CleaningJob>,
}

/// Answer to an [`Order`].
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cleaned {
    /// What was cleaned before the answer, for [`Action::One`].
    #[serde(flatten)]
    pub step: store::CleaningStep,
    /// The cleaner's status after the order.
    pub status: store::CleanerStatus,
}

/// An order to the scrub.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scrub {
    /// Check all metadata, in the background.
    Metadata,
    /// Check all metadata and all data, in the background.
    Data,
    /// Stop after the current piece; the scrub begins again when it is ordered, or by itself when its next pass is
    /// due.
    Stop,
}

/// An order to make a backup.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Backup {
    /// Parent of an incremental backup: a file that the server can read. `None` for a full backup. In JSON, it is
    /// written as a [`Name`] is: a path may be any bytes.
    #[serde(default, with = "path")]
    pub since: Option<PathBuf>,
    /// Time of the backup, Unix time in microseconds.
    pub now_micros: u64,
    /// Leave out damaged objects and name them, instead of failing.
    pub skip_damaged: bool,
}

/// A path in JSON, as a [`Name`].
mod path {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::PathBuf;
    use store::Name;

    pub fn serialize<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
        let name = path
            .as_ref()
            .map(|path| Name::from(path.as_os_str().as_bytes()));
        name.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
        let name = Option::<Name>::deserialize(from)?;
        Ok(name.map(|name| OsString::from_vec(name.to_vec()).into()))
    }
}

/// Kind of an error, which says what the caller can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// There is no such collection or object.
    NotFound,
    /// There is no such call; the server may be an older version.
    UnknownCall,
    /// The request's query or body is not valid.
    Invalid,
    /// The request's body did not arrive completely.
    BrokenOff,
    /// The request is larger than [`MAX_REQUEST_BYTES`].
    TooLarge,
    /// The drive is full.
    NoSpace,
    /// Data or metadata is damaged.
    Damaged,
    /// The server is about to stop.
    Stopping,
    /// The snapshot of a backup was given up because writes needed its space.
    GivenUp,
    /// The daemon has no such drive.
    NoDrive,
    /// The drive has no such storage policy.
    NoPolicy,
    /// The storage policy is of another kind.
    OtherPolicy,
    /// Data that was staged, or an open handle, no longer exists.
    Gone,
    /// The server holds as much for its clients as it may.
    Busy,
    /// Any other error; also kinds that are newer than this program.
    #[serde(other)]
    Failed,
}

/// An error on the wire.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Problem {
    /// What the caller can do.
    pub kind: Kind,
    /// One line for people.
    pub message: String,
    /// The file that the error is about, if it is about one of a Swift object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_path_may_be_any_bytes() {
        for (path, json) in [
            (None, "null"),
            (Some(&b"/a/b.tar"[..]), "\"/a/b.tar\""),
            (Some(b"/a\xff"), r#"{"hex":"2f61ff"}"#),
        ] {
            let order = Backup {
                since: path.map(|path| OsStr::from_bytes(path).into()),
                now_micros: 1,
                skip_damaged: false,
            };
            let sent = serde_json::to_string(&order).unwrap();
            assert!(sent.contains(&format!("\"since\":{json},")), "{sent}");
            assert_eq!(serde_json::from_str::<Backup>(&sent).unwrap(), order);
        }
        let full = r#"{"now_micros":1,"skip_damaged":false}"#;
        assert_eq!(serde_json::from_str::<Backup>(full).unwrap().since, None);
    }
}
