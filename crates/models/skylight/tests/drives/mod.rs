//! Random drives that Skylight knows nothing of, and their hidden properties.
#![allow(clippy::unwrap_used, dead_code, reason = "each test has a part of it")]

pub mod judge;
pub mod uneven;

use drive_model::flash::{FlashProfile, ManagementShape};
use drive_model::layer::{
    CachePlace as Place, FullyAssociativeShape, SeagateShape, SetAssociativeShape,
};
use drive_model::mechanics::{Geometry, SeekTimes, Shape, Stroke};
use drive_model::profile::LayerShape;
use drive_model::{
    ConventionalPlace, DiskZones, Electronics, Lba, Pba, Profile, Request, Span, Time,
};
use skylight::finding::{CachePlace, CacheType, CleaningType, DriveType, Mapping, Shingling};
use skylight::{Model, Random};
use zone::ZoneKind;

const MIB: u64 = 256;
const GIB: u64 = 1024 * MIB;

/// The properties of a drive, as far as they can be found.
#[derive(Debug)]
pub struct Hidden {
    pub kind: DriveType,
    pub cache: Option<CacheType>,
    pub place: Option<CachePlace>,
    /// Blocks that the cache takes before cleaning; of a set-associative one, all that it has.
    pub cache_blocks: u64,
    /// Blocks of a band at the beginning, in the middle and at the end of the drive.
    pub bands: Vec<u64>,
    pub mapping: Option<Mapping>,
    pub cleaning: Option<CleaningType>,
    pub map_entries: Option<u64>,
    /// Whether bands are cleaned in the order of writing; `None` if this differs within the drive.
    pub fifo: Option<bool>,
    pub torn: bool,
    pub heads: u32,
    pub shingling: Option<Shingling>,
    /// Whether strokes at the middle diameter run to and fro; `None` if this differs among those that lie there.
    pub serpentine: Option<bool>,
    /// Milliseconds that an idle drive takes to clean a band of which one block was written.
    pub band_ms: Option<f64>,
}

/// A random number from `low` to `high`, both included.
pub fn between(random: &mut Random, low: u64, high: u64) -> u64 {
    low + random.below(high - low + 1)
}

/// A random number from `low` to `high`, each magnitude as likely as another.
fn magnitude(random: &mut Random, low: u64, high: u64) -> u64 {
    let part = random.below(1 << 20) as f64 / f64::from(1 << 20);
    (low as f64 * (high as f64 / low as f64).powf(part)) as u64
}

/// A random drive and its properties.
pub fn hidden(seed: u64) -> (Profile, Hidden) {
    let mut random = Random::new(seed * 2 + 1);
    let r = &mut random;
    let blocks = magnitude(r, 500 * GIB, 7_000 * GIB);
    let outer = magnitude(r, 110, 560) as u32;
    let inner = outer * between(r, 45, 65) as u32 / 100;
    let heads = between(r, 2, 12) as u32;
    let idle = (r.below(2) == 0).then(|| between(r, 500, 2_000) as f64);
    let long = r.below(2) == 0;
    let mean_track = u64::from(outer + inner) / 2;
    let class = r.below(5);
    let band = magnitude(r, 8 * MIB, 300 * MIB);
    // At most a tenth of the drive, and at least a hundredth: no more than a hundred data bands for each cache band.
    let cache = magnitude(r, GIB, 280 * GIB).clamp(blocks / 100, blocks / 10);
    // At least eight cache bands for each zone.
    let zones = magnitude(r, 1, 150).min(cache / band / 8).max(1);
    let entries = magnitude(r, 5_000, 40_000) as u32;
    let extra = match class {
        4 => u64::from(entries * 5) * u64::from(outer) / 2 + 4 * GIB,
        3 => cache + zones * 40 * band + 40 * GIB,
        _ => cache + 40 * GIB,
    };
    let cylinders = (blocks + extra) / mean_track / u64::from(heads) + 1;
    let track_to_track_ms = between(r, 3, 8) as f64 / 10.0;
    let full_stroke_ms = between(r, 14, 24) as f64;
    let mut shape = Shape {
        rpm: between(r, 4_200, 10_000) as u32,
        heads,
        cylinders: cylinders as u32,
        recording_zones: between(r, 8, 24) as u32,
        innermost_zone_width: 1.0,
        outer_track_blocks: outer,
        inner_track_blocks: inner,
        stroke_tracks: if long {
            between(r, 2_000, 12_000)
        } else {
            between(r, 10, 200)
        } as u32,
        stroke: [Stroke::Alternating, Stroke::Inwards, Stroke::TowardsMiddle][r.below(3) as usize],
        serpentine_part: 0.0,
        head_density: Vec::new(),
        track_skew_us: (track_to_track_ms + 0.3) * 1e3,
        head_skew_us: 1_600.0,
    };
    let cleaning = if idle.is_some() {
        CleaningType::Aggressive
    } else {
        CleaningType::Lazy
    };
    let mut expected = Hidden {
        kind: DriveType::DriveManaged,
        cache: Some(CacheType::Disk),
        place: None,
        cache_blocks: 0,
        bands: vec![band; 3],
        mapping: Some(Mapping::Static),
        cleaning: Some(cleaning),
        map_entries: None,
        fifo: Some(false),
        torn: false,
        heads,
        shingling: match shape.stroke {
            Stroke::Alternating => None,
            Stroke::Inwards => Some(Shingling::Inwards),
            Stroke::TowardsMiddle => Some(Shingling::TowardsMiddle),
        },
        serpentine: None,
        band_ms: None,
    };
    let layer = match class {
        0 => {
            expected = Hidden {
                kind: DriveType::Conventional,
                cache: None,
                bands: Vec::new(),
                mapping: None,
                cleaning: None,
                ..expected
            };
            LayerShape::Conventional
        }
        1 | 2 => {
            let cache_bands = (cache / band).max(16) as u32;
            let place = if class == 2 {
                Place::Flash
            } else {
                [Place::Outer, Place::Middle, Place::Inner][r.below(3) as usize]
            };
            expected.place = match place {
                Place::Outer => Some(CachePlace::Outer),
                Place::Middle => Some(CachePlace::Middle),
                Place::Inner => Some(CachePlace::Inner),
                Place::Flash => None,
            };
            expected.cache = Some(if class == 2 {
                CacheType::Flash
            } else {
                CacheType::Disk
            });
            expected.cache_blocks = u64::from(cache_bands) * band;
            LayerShape::SetAssociative(SetAssociativeShape {
                band_blocks: band as u32,
                cache_bands,
                place,
                flash_block_us: between(r, 50, 300) as f64,
                idle_before_cleaning_ms: idle,
            })
        }
        3 => {
            let zone_data_bands = (blocks / band / zones) as u32;
            // A cache that is emptied only when necessary is filled again and again to find its bands.
            let most = if idle.is_none() { 12 * GIB } else { cache };
            let zone_cache_bands = ((cache / zones).min(most) / band).max(8) as u32;
            // A zone's cache lies after its data.
            expected.place = Some(if zones == 1 {
                CachePlace::Inner
            } else {
                CachePlace::Multiple
            });
            // Cleaning begins in the last quarter of the last band.
            expected.cache_blocks = (u64::from(zone_cache_bands) * 4 - 1) * band / 4 * zones;
            expected.fifo = (zones == 1)
                .then_some(true)
                .or((zones > 8).then_some(false));
            expected.mapping = Some(Mapping::Dynamic);
            LayerShape::FullyAssociative(FullyAssociativeShape {
                band_blocks: band as u32,
                zone_data_bands,
                zone_cache_bands,
                zone_free_bands: between(r, 3, 40) as u32,
                stream_min_blocks: 0,
                idle_before_cleaning_ms: idle,
                clean_every_writes: None,
                map_extents: None,
                writes_by_zone: false,
            })
        }
        _ => {
            let map = between(r, 50_000, 600_000) as u32;
            let band_tracks = between(r, 10, 30) as u32;
            let half_track = u64::from(outer) * 45 / 100;
            // If entries are as long as possible, six half tracks of ten are the host's. Some journals have no room
            // for all that the cache would take.
            let most = u64::from(entries) * 5 * half_track * 6 / 10;
            let payload = (most * between(r, 15, 105) / 100) as u32;
            expected.fifo = Some(true);
            expected.torn = true;
            expected.place = Some(CachePlace::Outer);
            expected.cache_blocks = u64::from(payload);
            expected.cleaning = Some(CleaningType::Aggressive);
            expected.map_entries = Some(u64::from(map));
            // Bands differ between recording zones: their sizes are not judged.
            expected.bands = Vec::new();
            LayerShape::Seagate(SeagateShape {
                cache_half_tracks: entries * 5,
                half_track_payload_blocks: half_track as u32,
                out_of_band_half_tracks: 4,
                entry_max_half_tracks: 6,
                entry_gap_us: 1_500.0,
                extent_read_gap_us: f64::from(50 + map % 150),
                cache_payload_blocks: payload,
                map_extents: map,
                map_merge_entries: between(r, 100, 400) as u32,
                map_merge_ms: between(r, 100, 300) as f64,
                map_update_ms: 5.0,
                band_tracks,
                idle_before_cleaning_ms: between(r, 500, 2_000) as f64,
                stream_min_blocks: (4 + r.below(12) as u32) * 256,
                stream_wait_ms: 20.0,
            })
        }
    };
    let electronics = Electronics {
        command_us: between(r, 80, 250) as f64,
        interface_bytes_per_second: 550_000_000,
        volatile_cache_bytes: 64 << 20,
        look_ahead_bytes: 8 << 20,
    };
    if r.below(2) == 0 {
        shape.innermost_zone_width = between(r, 30, 100) as f64 / 100.0;
        shape.serpentine_part = between(r, 0, 40) as f64 / 100.0;
    }
    if r.below(2) == 0 {
        let density = |_| 0.95 + r.below(1_000) as f64 / 10_000.0;
        shape.head_density = (0..heads).map(density).collect();
        let mean = shape.head_density.iter().sum::<f64>() / f64::from(heads);
        shape.head_density.iter_mut().for_each(|d| *d /= mean);
    }
    let mut profile = Profile {
        name: format!("hidden-{seed}"),
        description: String::new(),
        source: String::new(),
        capacity_bytes: blocks * 4096,
        electronics,
        shape,
        seek: SeekTimes {
            track_to_track_ms,
            average_ms: track_to_track_ms + (full_stroke_ms - track_to_track_ms) * 0.48,
            full_stroke_ms,
            head_switch_ms: 1.0,
            write_settle_ms: 0.1,
        },
        layer,
        zones: None,
        noise: None,
    };
    // The layer may need a little more room for itself than was estimated.
    while profile.drive(seed).is_err() {
        profile.shape.cylinders += profile.shape.cylinders / 100;
    }
    let runs = serpentine_middle(&profile.shape, blocks);
    let first = runs.first().copied();
    expected.serpentine = first.filter(|first| runs.iter().all(|run| run == first));
    if expected.cleaning == Some(CleaningType::Aggressive) {
        expected.band_ms = band_ms(&profile, seed);
    }
    (profile, expected)
}

/// Milliseconds that the drive takes for a band with one new block, by its own statistics: the mean over [`BANDS`].
fn band_ms(profile: &Profile, seed: u64) -> Option<f64> {
    let mut drive = profile.drive(seed).unwrap();
    drive.set_volatile_cache(false);
    let mut now = Time::START;
    for n in 0..BANDS {
        let lba = drive.blocks() / BANDS * n;
        now = drive.submit(Request::write(Lba(lba), 1), now).at;
    }
    let before = drive.statistics().cleaning;
    drive.idle_until(now + Span::from_seconds(36_000.0));
    let cleaned = drive.statistics().cleaning.since(&before);
    (cleaned.bands > 0).then(|| cleaned.nanos as f64 / 1e6 / cleaned.bands as f64)
}

const BANDS: u64 = 96;

/// Whether strokes run to and fro, for each of the recording zones around the middle of the cylinders that hold
/// blocks: then the second stroke of a group begins on another cylinder than the first.
pub fn serpentine_middle(shape: &Shape, blocks: u64) -> Vec<bool> {
    let geometry = Geometry::new(shape).unwrap();
    let cylinders = geometry.place(Pba(blocks - 1)).track.cylinder;
    let around = cylinders * 45 / 100..cylinders * 55 / 100;
    let zones = geometry.recording_zones();
    zones
        .filter(|zone| zone.first_cylinder < around.end)
        .filter(|zone| zone.first_cylinder + zone.cylinders > around.start)
        .map(|zone| {
            let first = geometry.place(zone.first).track;
            let tracks = shape.stroke_tracks.min(zone.cylinders);
            let second = zone.first.plus(u64::from(tracks * first.blocks));
            geometry.place(second).track.cylinder != first.cylinder
        })
        .collect()
}

/// A number from an environment variable.
pub fn number(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// A drive that is not drive-managed, and not conventional either.
pub fn other(seed: u64) -> (Model, DriveType) {
    let mut random = Random::new(seed * 2 + 1);
    let r = &mut random;
    let kind = [
        DriveType::HostManaged,
        DriveType::HostAware,
        DriveType::Flash,
        DriveType::HostManaged,
    ][seed as usize % 4];
    if kind == DriveType::Flash || seed % 8 == 3 {
        let zns = kind != DriveType::Flash;
        let name = if zns { "zns-zn540" } else { "ssd-15gb" };
        let mut profile = FlashProfile::named(name).unwrap();
        profile.flash.read_us = between(r, 20, 200) as f64;
        profile.flash.program_us = between(r, 200, 3_000) as f64;
        profile.controller.read_us = between(r, 4, 40) as f64;
        profile.controller.write_us = between(r, 4, 100) as f64;
        if let ManagementShape::Zoned(zones) = &mut profile.management {
            zones.zones = between(r, 100, 900) as u32;
            zones.zone_size_bytes = (2 << 30) << r.below(2);
        }
        let model = Model::of(move || Ok(Box::new(profile.drive()?)));
        return (model.unwrap(), kind);
    }
    // A host-managed disk has the tracks of a hidden drive; a host-aware one has its translation layer, too.
    let managed = kind == DriveType::HostManaged;
    let (mut profile, _) = (seed..)
        .map(hidden)
        .find(|(_, hidden)| (hidden.kind == DriveType::Conventional) == managed)
        .unwrap();
    let middle = managed && r.below(2) == 0;
    profile.zones = Some(DiskZones {
        zone_size_bytes: (64 << 20) << r.below(4),
        conventional_zones: between(r, 0, 600) as u32,
        conventional_place: if middle {
            ConventionalPlace::Middle
        } else {
            ConventionalPlace::Outer
        },
        sequential_kind: if managed {
            ZoneKind::SequentialWriteRequired
        } else {
            ZoneKind::SequentialWritePreferred
        },
        max_open_zones: 0,
    });
    let model = Model::of(move || Ok(Box::new(profile.zoned(seed)?)));
    (model.unwrap(), kind)
}
