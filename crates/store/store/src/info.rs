//! Descriptions of a store, its collections, objects and zones.

use crate::{Attributes, Hashed, Name};
use cache::CacheStatistics;
use serde::{Deserialize, Serialize};
use zone::ZoneId;

/// A collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectionInfo {
    /// Its name.
    pub name: String,
    /// Its hashes, if it is a collection by hash; `None`: its objects are in order of names.
    pub hashed: Option<Hashed>,
    /// When it was made, Unix time in microseconds.
    pub created_micros: u64,
    /// Its attributes.
    pub attributes: Attributes,
}

/// An object, without its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Its name.
    pub name: Name,
    /// Bytes of data.
    pub size: u64,
    /// When its data last changed, Unix time in microseconds.
    pub modified_micros: u64,
    /// Its attributes.
    pub attributes: Attributes,
}

/// Space, in bytes unless said otherwise.
///
/// Small objects lie in the metadata; their bytes count as live and as capacity. Hence
/// `drive = (capacity - inline) + metadata + reserve + conventional + unusable + set aside`, and
/// `capacity = live + pinned + dead + free`.
/// Capacity follows the metadata in steps, and never falls below what is live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statfs {
    /// Capacity of the drive.
    pub drive_bytes: u64,
    /// Most bytes that objects can fill.
    pub capacity_bytes: u64,
    /// Bytes of objects, with padding to whole blocks.
    pub live_bytes: u64,
    /// The part of `live_bytes` that lies in the metadata: objects of up to half a block.
    pub inline_bytes: u64,
    /// Bytes written by uploads under way, or reserved for them.
    #[serde(default)]
    pub pinned_bytes: u64,
    /// Bytes written and no longer live, and unusable tails of finished zones: cleaning gives them back.
    pub dead_bytes: u64,
    /// Bytes that can be written, some of them only after BlueFS has given back zones that are mostly dead.
    pub free_bytes: u64,
    /// Bytes that can still be stored: `capacity - live - pinned`, or less where the host's disk has less.
    pub available_bytes: u64,
    /// Bytes of BlueFS's zones, without those that it gives back as soon as data needs them.
    pub metadata_bytes: u64,
    /// Bytes that are kept free for the cleaner and for metadata to grow.
    pub reserve_bytes: u64,
    /// Bytes of free conventional zones, which take metadata only.
    pub conventional_free_bytes: u64,
    /// Bytes of zones that are read-only, offline or out of use and hold no object data.
    pub unusable_bytes: u64,
    /// Bytes that are not live in zones with unreadable or read-only object data: they cannot be reused before the
    /// objects there are removed.
    #[serde(default)]
    pub set_aside_bytes: u64,
    /// The part of `dead_bytes` that lies above the write pointers of sealed zones.
    pub unwritten_tail_bytes: u64,
    /// Bytes free on the host's disk under a drive file; `None` for a device.
    #[serde(default)]
    pub host_free_bytes: Option<u64>,
    /// The part of [`Self::host_free_bytes`] that new data may not use, so that deletes still can.
    #[serde(default)]
    pub host_kept_bytes: u64,
    /// Zones of the drive, each part of a conventional one counted by itself.
    pub zones: u32,
    /// Number of parts into which each conventional zone is divided.
    #[serde(default)]
    pub conventional_parts: u32,
    /// Free zones.
    pub free_zones: u32,
    /// The free zones that new data may take.
    pub free_zones_for_data: u32,
    /// Zones with object data.
    pub store_zones: u32,
    /// Zones that BlueFS has, for metadata.
    pub metadata_zones: u32,
}

/// Statistics of the caches in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caches {
    /// Cache of the database's blocks: onodes, extents, names.
    pub metadata: CacheStatistics,
    /// Cache of objects' data.
    pub data: CacheStatistics,
}

/// How a zone with object data is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneUse {
    /// Its number.
    pub zone: ZoneId,
    /// Bytes written to it.
    pub written_bytes: u64,
    /// The live part of these.
    pub live_bytes: u64,
}
