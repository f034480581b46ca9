//! What a store tells of itself and of what is in it.

use crate::{Attributes, Hashed, Name};
use cache::CacheStatistics;
use serde::{Deserialize, Serialize};
use zone::ZoneId;

/// A collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectionInfo {
    /// Its name.
    pub name: String,
    /// What makes it one by hash; `None`: its objects are in order of their names.
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
    /// All that the drive can hold.
    pub drive_bytes: u64,
    /// What object data may fill at most.
    pub capacity_bytes: u64,
    /// Object data, padding to whole blocks included.
    pub live_bytes: u64,
    /// Of `live_bytes`, what lies in the metadata: objects of up to half a block.
    pub inline_bytes: u64,
    /// Of uploads under way: written, or promised to them.
    #[serde(default)]
    pub pinned_bytes: u64,
    /// Written and no longer wanted, or the tail of a finished zone: cleaning gives it back.
    pub dead_bytes: u64,
    /// Can be written, some of it after BlueFS has given back zones that are mostly dead.
    pub free_bytes: u64,
    /// What can still be stored: `capacity - live - pinned`, or less where the host's disk has less.
    pub available_bytes: u64,
    /// Zones that BlueFS has, without those that it gives back as soon as data needs them.
    pub metadata_bytes: u64,
    /// Kept for the cleaner and for metadata to grow.
    pub reserve_bytes: u64,
    /// Free conventional zones; they take metadata only.
    pub conventional_free_bytes: u64,
    /// Zones that are read-only, offline or out of use and hold no object data.
    pub unusable_bytes: u64,
    /// What is not live of zones with object data that cannot be read, or only be read: it cannot be
    /// given back before the objects in it are removed.
    #[serde(default)]
    pub set_aside_bytes: u64,
    /// Of `dead_bytes`, what lies behind the end of sealed zones.
    pub unwritten_tail_bytes: u64,
    /// What the host's disk under a drive file has left; none of a drive that is a device.
    #[serde(default)]
    pub host_free_bytes: Option<u64>,
    /// Of these, what new data leaves for deletes.
    #[serde(default)]
    pub host_kept_bytes: u64,
    /// Zones of the drive, each part of a conventional one by itself.
    pub zones: u32,
    /// In how many parts conventional zones are used.
    #[serde(default)]
    pub conventional_parts: u32,
    /// Zones that are free.
    pub free_zones: u32,
    /// Of these, zones that new data may take.
    pub free_zones_for_data: u32,
    /// Zones with object data.
    pub store_zones: u32,
    /// Zones of BlueFS.
    pub metadata_zones: u32,
}

/// What a store keeps in memory of what it has read, and how often that was of use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caches {
    /// Blocks of the database: onodes, extents, names.
    pub metadata: CacheStatistics,
    /// Bytes of objects.
    pub data: CacheStatistics,
}

/// How a zone with object data is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneUse {
    /// The zone.
    pub zone: ZoneId,
    /// Bytes written to it.
    pub written_bytes: u64,
    /// Of these, bytes of objects.
    pub live_bytes: u64,
}
