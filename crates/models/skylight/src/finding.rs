//! What was found, and how sure that is.

use serde::{Deserialize, Serialize};

/// A kind of drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriveType {
    /// A disk that writes where it is told.
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

/// What a persistent cache is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheType {
    /// Part of the disk.
    Disk,
    /// Flash memory.
    Flash,
}

/// Where a cache on the disk is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CachePlace {
    /// One, at the outer diameter.
    Outer,
    /// One, in the middle.
    Middle,
    /// One, at the inner diameter.
    Inner,
    /// One for each part of the disk.
    Multiple,
}

/// When a drive cleans.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CleaningType {
    /// When a write needs the space.
    Lazy,
    /// When there is nothing else to do.
    Aggressive,
}

/// Where a block that is not in the cache lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mapping {
    /// Always in the same place.
    Static,
    /// Cleaning moves it.
    Dynamic,
}

/// In which direction tracks follow each other on a surface: those of a band overlap that way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shingling {
    /// Towards the inner diameter.
    Inwards,
    /// Towards the outer diameter.
    Outwards,
    /// Inwards in the outer part and outwards in the inner one.
    TowardsMiddle,
    /// The other way round.
    AwayFromMiddle,
}

/// Something that was found, with how sure it is: 1 is certain, one half a guess.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Finding<T> {
    /// What.
    pub value: T,
    /// How sure, 0 to 1.
    pub confidence: f64,
}

impl<T> Finding<T> {
    /// A finding.
    pub const fn new(value: T, confidence: f64) -> Self {
        Self { value, confidence }
    }
}

/// What ended a test before the size that it looks for did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The map was full first.
    Map,
    /// The journal had no room for another entry first.
    Journal,
    /// A part of it was full first.
    Part,
    /// The test writes no more.
    Test,
}

/// A size as far as it was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Size {
    /// Bytes or entries.
    pub value: u64,
    /// If this ended the test, the size is `value` at least.
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

    /// One that is no less.
    pub const fn at_least(value: u64, bound: Bound) -> Self {
        Self {
            value,
            at_least: Some(bound),
        }
    }
}

/// Everything that was found. What is missing does not apply, or could not be told.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Findings {
    /// Milliseconds of a turn of the platters.
    pub turn_ms: Option<f64>,
    /// Kind of drive (test 1). Missing if the test was done: it cannot be told, for the reason in
    /// `unknown`.
    pub drive_type: Option<Finding<DriveType>>,
    /// What its persistent cache is made of (test 1).
    pub cache_type: Option<Finding<CacheType>>,
    /// Where that is (test 2).
    pub cache_place: Option<Finding<CachePlace>>,
    /// When it cleans (test 3).
    pub cleaning: Option<Finding<CleaningType>>,
    /// Whether it cleans in the order of writing (tests 4 and 5).
    pub fifo: Option<Finding<bool>>,
    /// Milliseconds to clean a band of which one block was written (test 4).
    pub band_cleaning_ms: Option<f64>,
    /// Milliseconds to clean a band of which every other block of 4 MiB was written (section 2.4.9).
    pub band_cleaning_many_ms: Option<f64>,
    /// Writes of 4 KiB, one at a time, until it cleans (test 6).
    pub writes_until_full: Option<u64>,
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
    /// Bytes of a band at the beginning, in the middle and at the end (test 11).
    pub band_bytes: Vec<u64>,
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
    /// What could not be told, and why.
    pub unknown: Vec<String>,
    /// Seconds of the drive's time that all this took.
    pub seconds: f64,
}

impl Findings {
    /// The entries after which its map, or the journal in front of it, makes it clean.
    pub fn map_limit(&self) -> Option<u64> {
        let met = |size: &Size| size.at_least != Some(Bound::Test);
        self.map_entries.filter(met).map(|size| size.value)
    }

    /// Bytes that it takes until it cleans, if they are spread as evenly as can be.
    pub fn burst_bytes(&self) -> Option<u64> {
        let all = self.cache_bytes?.value as f64;
        // The cache band that most data bands share is full first.
        let shared = self.data_bands_per_cache_band;
        let part = shared.map_or(1.0, |bands| bands / bands.ceil());
        Some((all * part) as u64)
    }
}
