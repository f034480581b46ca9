//! Findings of the tests, each with its confidence.

use serde::{Deserialize, Serialize};

/// Kind of a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriveType {
    /// A disk that writes in place.
    Conventional,
    /// A shingled disk with a translation layer.
    DriveManaged,
    /// A drive with zones that refuses writes out of order: a shingled disk or ZNS flash.
    HostManaged,
    /// A drive with zones that takes writes in any order.
    HostAware,
    /// Flash memory.
    Flash,
}

/// Medium of a persistent cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheType {
    /// Part of the disk.
    Disk,
    /// Flash memory.
    Flash,
}

/// Location of a cache on the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CachePlace {
    /// One cache, at the outer diameter.
    Outer,
    /// One cache, at the middle diameter.
    Middle,
    /// One cache, at the inner diameter.
    Inner,
    /// One cache for each part of the disk.
    Multiple,
}

/// When a drive cleans its cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CleaningType {
    /// When a write needs the space.
    Lazy,
    /// When the drive is idle.
    Aggressive,
}

/// Where a block lies that is not in the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mapping {
    /// Always in the same place.
    Static,
    /// Cleaning moves it.
    Dynamic,
}

/// Direction in which consecutive tracks of a surface follow each other, and those of a band overlap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shingling {
    /// Towards the inner diameter.
    Inwards,
    /// Towards the outer diameter.
    Outwards,
    /// Inwards in the outer part and outwards in the inner one.
    TowardsMiddle,
    /// Outwards in the outer part and inwards in the inner one.
    AwayFromMiddle,
}

/// A finding with its confidence: 1 is certain, one half is a guess.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Finding<T> {
    /// The finding.
    pub value: T,
    /// Its confidence, from 0 to 1.
    pub confidence: f64,
}

impl<T> Finding<T> {
    /// A finding.
    pub const fn new(value: T, confidence: f64) -> Self {
        Self { value, confidence }
    }
}

/// What ended a test before it reached the size that it looks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The map was full first.
    Map,
    /// The journal had no room for another entry first.
    Journal,
    /// One part of the cache was full first.
    Part,
    /// The test reached its own limit.
    Test,
}

/// A size, exact or a lower bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Size {
    /// The size, in bytes or entries.
    pub value: u64,
    /// What ended the test early: the size is at least `value` then.
    pub at_least: Option<Bound>,
}

impl Size {
    /// A size that was found.
    pub const fn exact(value: u64) -> Self {
        Self {
            value,
            at_least: None,
        }
    }

    /// A lower bound.
    pub const fn at_least(value: u64, bound: Bound) -> Self {
        Self {
            value,
            at_least: Some(bound),
        }
    }
}

/// All findings. A missing one does not apply, or could not be determined.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Findings {
    /// Milliseconds of a turn of the platters.
    pub turn_ms: Option<f64>,
    /// Kind of drive (test 1). If the test was done and this is missing, `unknown` has the reason.
    pub drive_type: Option<Finding<DriveType>>,
    /// Medium of the persistent cache (test 1).
    pub cache_type: Option<Finding<CacheType>>,
    /// Location of the cache (test 2).
    pub cache_place: Option<Finding<CachePlace>>,
    /// When it cleans (test 3).
    pub cleaning: Option<Finding<CleaningType>>,
    /// Whether the drive cleans in the order of writing (tests 4 and 5).
    pub fifo: Option<Finding<bool>>,
    /// Milliseconds to clean a band of which one block was written (test 4). If it cleans lazily: for which a write
    /// waited that made it clean one of which about a hundred were (test 11).
    pub band_cleaning_ms: Option<f64>,
    /// Milliseconds to clean a band of which every other block of 4 MiB was written (section 2.4.9).
    pub band_cleaning_many_ms: Option<f64>,
    /// Whether bands were cleaned before the drive was left alone (section 2.4.9), if that was looked at.
    #[serde(default)]
    pub cleans_while_written: Option<bool>,
    /// Writes of 4 KiB, one at a time, until it cleans (test 6).
    pub writes_until_full: Option<u64>,
    /// Whether single writes were seen to fill a journal before its map was full (tests 6 and 7).
    #[serde(default)]
    pub has_journal: bool,
    /// Writes of 4 KiB, many at a time, until it cleans: the size of its map (test 7). Missing if these fill
    /// the cache itself.
    pub map_entries: Option<Size>,
    /// Such writes a second until then (test 7).
    pub burst_writes_per_second: Option<f64>,
    /// Bytes a second of large writes until it cleans (test 8).
    pub burst_bytes_per_second: Option<f64>,
    /// Bytes until it cleans (test 8), of all parts of the cache.
    pub cache_bytes: Option<Size>,
    /// Bands of data that share a band of the cache, if a band's writes can go into one of these only:
    /// `cache_bytes` is all of the cache then, and as many writes come before cleaning only if they are
    /// spread over such bands evenly.
    pub data_bands_per_cache_band: Option<f64>,
    /// Whether the cache is a circular log (tests 9 and 10).
    pub circular_log: Option<Finding<bool>>,
    /// Bytes of a band at the beginning, in the middle and at the end, where its edges were seen (test 11).
    pub band_bytes: [Option<u64>; 3],
    /// How blocks are mapped (test 12).
    pub mapping: Option<Finding<Mapping>>,
    /// Whether a power cut in a sequential write left blocks unreadable (test 13).
    pub torn_writes: Option<Finding<bool>>,
    /// How many surfaces there are (test 14).
    pub surfaces: Option<Finding<u32>>,
    /// The shortest and the longest stretch in bytes that lies on one surface (test 14).
    pub zone_bytes: Option<(u64, u64)>,
    /// Bytes a second of sequential reads at the beginning and at the end (test 14).
    pub sequential_bytes_per_second: Option<(f64, f64)>,
    /// In which direction tracks overlap (test 14).
    pub shingling: Option<Finding<Shingling>>,
    /// Whether tracks follow each other to and fro at the middle diameter (test 14).
    pub serpentine_middle: Option<Finding<bool>>,
    /// Bytes of a sequential write from which on it is streamed (test 15).
    pub stream_bytes: Option<u64>,
    /// What could not be determined, and why.
    pub unknown: Vec<String>,
    /// Seconds of the drive's time for all tests.
    pub seconds: f64,
}

impl Findings {
    /// The sizes of bands that are known.
    pub fn bands(&self) -> impl Iterator<Item = u64> {
        self.band_bytes.into_iter().flatten()
    }

    /// The size of a band in the middle of the drive.
    pub const fn middle_band(&self) -> Option<u64> {
        self.band_bytes[1]
    }

    /// Number of entries after which the map, or the journal before it, makes the drive clean.
    pub fn map_limit(&self) -> Option<u64> {
        let met = |size: &Size| size.at_least != Some(Bound::Test);
        self.map_entries.filter(met).map(|size| size.value)
    }

    /// Bytes until the drive cleans, if they are spread as evenly as possible. Missing if it was not made to.
    pub fn burst_bytes(&self) -> Option<u64> {
        let met = |size: &Size| size.at_least != Some(Bound::Test);
        let all = self.cache_bytes.filter(met)?.value as f64;
        // The cache band that the most data bands share is full first.
        let shared = self.data_bands_per_cache_band;
        let part = shared.map_or(1.0, |bands| bands / bands.ceil());
        Some((all * part) as u64)
    }
}
