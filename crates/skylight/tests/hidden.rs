//! Random drives that Skylight knows nothing of. The seed of a failing one is printed;
//! `SKYLIGHT_DRIVES` says how many there are (12), `SKYLIGHT_SEED` where they begin.
#![allow(clippy::unwrap_used)]

use drive_model::flash::{FlashProfile, ManagementShape};
use drive_model::layer::{
    CachePlace as Place, FullyAssociativeShape, SeagateShape, SetAssociativeShape,
};
use drive_model::mechanics::{SeekTimes, Shape, Stroke};
use drive_model::profile::LayerShape;
use drive_model::{ConventionalPlace, DiskZones, Electronics, NoiseShape, Profile};
use skylight::finding::{
    CachePlace, CacheType, CleaningType, DriveType, Finding, Findings, Mapping, Shingling, Size,
};
use skylight::target::limits::Limits;
use skylight::{Model, Options, Random, examine};
use std::sync::atomic::Ordering;
use zone::ZoneKind;

const MIB: u64 = 256;
const GIB: u64 = 1024 * MIB;

/// What is hidden in a drive, as far as it can be found.
#[derive(Debug)]
struct Hidden {
    kind: DriveType,
    cache: Option<CacheType>,
    place: Option<CachePlace>,
    /// Blocks that it takes until it cleans, of a set-associative one all that it has.
    cache_blocks: u64,
    /// Blocks of a band at the beginning, in the middle and at the end of the drive.
    bands: Vec<u64>,
    mapping: Option<Mapping>,
    cleaning: Option<CleaningType>,
    map_entries: Option<u64>,
    /// Whether bands are cleaned in the order of writing, if that is so or not for all of the drive.
    fifo: Option<bool>,
    torn: bool,
    heads: u32,
    shingling: Option<Shingling>,
}

fn between(random: &mut Random, low: u64, high: u64) -> u64 {
    low + random.below(high - low + 1)
}

/// A number between two, as likely to be of one magnitude as of another.
fn magnitude(random: &mut Random, low: u64, high: u64) -> u64 {
    let part = random.below(1 << 20) as f64 / f64::from(1 << 20);
    (low as f64 * (high as f64 / low as f64).powf(part)) as u64
}

fn hidden(seed: u64) -> (Profile, Hidden) {
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
    // As much as a tenth of the drive, and for bands of data no more than a hundred times as many as of the
    // cache.
    let cache = magnitude(r, GIB, 280 * GIB).clamp(blocks / 100, blocks / 10);
    // At least eight bands of each zone.
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
            // A cache that is emptied only where there is need is filled again and again to find its bands.
            let most = if idle.is_none() { 12 * GIB } else { cache };
            let zone_cache_bands = ((cache / zones).min(most) / band).max(8) as u32;
            // A zone's cache lies behind its data.
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
            // Six half tracks of ten are the host's if entries are as long as they can be; some journals have
            // no room for all that the cache would take.
            let most = u64::from(entries) * 5 * half_track * 6 / 10;
            let payload = (most * between(r, 15, 105) / 100) as u32;
            expected.fifo = Some(true);
            expected.torn = true;
            expected.place = Some(CachePlace::Outer);
            expected.cache_blocks = u64::from(payload);
            expected.cleaning = Some(CleaningType::Aggressive);
            expected.map_entries = Some(u64::from(map));
            // Of the recording zone that the middle of each of the tested regions is in.
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
    let profile = Profile {
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
    (profile, expected)
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(default)
}

/// What was said of many drives, and how often that was right.
#[derive(Default)]
struct Record(Vec<(&'static str, f64, bool)>);

impl Record {
    fn add<T: PartialEq + std::fmt::Debug>(
        &mut self,
        what: &'static str,
        said: Option<Finding<T>>,
        is: Option<T>,
    ) {
        if let (Some(said), Some(is)) = (said, is) {
            if said.value != is {
                println!("{what}: {said:?} for {is:?}");
            }
            self.0.push((what, said.confidence, said.value == is));
        }
    }

    /// All that a drive was said to be, with the confidence that it was said with. `None` is not judged.
    fn findings(&mut self, found: &Findings, hidden: &Hidden) {
        self.add("drive type", found.drive_type, Some(hidden.kind));
        self.add("cache type", found.cache_type, hidden.cache);
        self.add("cache place", found.cache_place, hidden.place);
        self.add("cleaning", found.cleaning, hidden.cleaning);
        self.add("fifo", found.fifo, hidden.fifo);
        self.add(
            "circular log",
            found.circular_log,
            hidden.map_entries.map(|_| true),
        );
        self.add("mapping", found.mapping, hidden.mapping);
        self.add("torn writes", found.torn_writes, Some(hidden.torn));
        self.add("surfaces", found.surfaces, Some(hidden.heads));
        self.add("shingling", found.shingling, hidden.shingling);
    }

    /// Of what is said with p, at least p is right: of each finding, and of each range of p. Two standard
    /// deviations are left to chance.
    fn uncalibrated(&self) -> Vec<String> {
        let mut names: Vec<&str> = self.0.iter().map(|(what, ..)| *what).collect();
        names.sort_unstable();
        names.dedup();
        let ranges = [(0.0, 0.8), (0.8, 0.95), (0.95, 1.1)];
        let mut wrong = Vec::new();
        for what in names {
            for (from, to) in ranges {
                let said =
                    (self.0.iter()).filter(|(name, p, _)| *name == what && (from..to).contains(p));
                let said: Vec<(f64, bool)> = said.map(|(_, p, right)| (*p, *right)).collect();
                let sum: f64 = said.iter().map(|(p, _)| p).sum();
                let chance: f64 = said.iter().map(|(p, _)| p * (1.0 - p)).sum();
                let right = said.iter().filter(|(_, right)| *right).count();
                if !said.is_empty() {
                    println!("{what}: {right} of {} right, said {sum:.1}", said.len());
                }
                if sum > right as f64 + 2.0 * chance.max(0.0).sqrt() {
                    wrong.push(format!("{what}: {right} right of {said:?}"));
                }
            }
        }
        wrong
    }
}

fn off(found: u64, hidden: u64) -> f64 {
    found as f64 / hidden as f64 - 1.0
}

/// How far off a size is that is said; one that is at least so much is too large at most.
fn size_off(found: Size, unit: u64, hidden: u64) -> f64 {
    let off = off(found.value / unit, hidden);
    if found.at_least.is_some() {
        off.max(0.0)
    } else {
        off.abs()
    }
}

#[test]
fn hidden_drives_are_found_out() {
    let (mut timed, mut aggressive) = (0, 0);
    let (mut managed, mut sized, mut banded, mut mapped, mut maps) = (0, 0, 0, 0, 0);
    let mut wrong = Vec::new();
    let mut record = Record::default();
    let mut worst = [
        ("cache", 0.0, 0),
        ("map", 0.0, 0),
        ("band", 0.0, 0),
        ("days", 0.0, 0),
    ];
    let first = number("SKYLIGHT_SEED", 1);
    for seed in first..first + number("SKYLIGHT_DRIVES", 12) {
        let (profile, hidden) = hidden(seed);
        let mut model = Model::new(profile, seed).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let options = Options { quick: false, seed };
        let (found, _, result) = examine(&mut model, options, &mut |_| {});
        assert_eq!(result, Ok(()), "seed {seed}");
        record.findings(&found, &hidden);
        let mut check = |what: &str, ok: bool| {
            if !ok {
                println!("seed {seed}: {what}: {hidden:?} {found:?}");
                wrong.push(format!("seed {seed}: {what}"));
            }
        };
        check(
            "kind",
            found.drive_type.map(|f| f.value) == Some(hidden.kind),
        );
        check("cache", found.cache_type.map(|f| f.value) == hidden.cache);
        check(
            "cleaning",
            found.cleaning.map(|f| f.value) == hidden.cleaning,
        );
        if hidden.kind == DriveType::Conventional {
            continue;
        }
        managed += 1;
        let right = |said: bool, is: bool| !said || is;
        let place = found.cache_place.map(|f| f.value);
        check("place", right(place.is_some(), place == hidden.place));
        let mapping = found.mapping.map(|f| f.value);
        check(
            "mapping",
            right(mapping.is_some(), mapping == hidden.mapping),
        );
        let farther = |worst: &mut (&str, f64, u64), off: f64| {
            if off > worst.1 {
                (worst.1, worst.2) = (off, seed);
            }
        };
        farther(&mut worst[3], found.seconds / 86_400.0);
        if let Some(size) = found.cache_bytes {
            let off = size_off(size, 4096, hidden.cache_blocks);
            farther(&mut worst[0], off);
            check("size of the cache", off < 0.01);
            sized += u32::from(size.at_least.is_none());
        }
        maps += u32::from(hidden.map_entries.is_some());
        if let Some((size, map)) = found.map_entries.zip(hidden.map_entries) {
            let off = size_off(size, 1, map);
            farther(&mut worst[1], off);
            check("map", off < 0.01);
            mapped += u32::from(size.at_least.is_none());
        }
        let times = found.band_cleaning_ms.zip(found.band_cleaning_many_ms);
        check(
            "more of a band takes longer",
            // The time of one has in it what the drive waits before it cleans, a few times over.
            times.is_none_or(|(one, many)| many > 0.7 * one),
        );
        timed += u32::from(times.is_some());
        aggressive += u32::from(hidden.cleaning == Some(CleaningType::Aggressive));
        banded += u32::from(found.band_bytes.len() == 3);
        for (bytes, band) in found.band_bytes.iter().zip(&hidden.bands) {
            let off = off(bytes / 4096, *band).abs();
            farther(&mut worst[2], off);
            check("size of a band", off < 0.01);
        }
        println!("seed {seed}: {:?}", found.unknown);
    }
    println!("farthest off, and longest (part, seed): {worst:?}");
    println!("of {managed}: {sized} with the size of the cache, {banded} of bands");
    println!("of {maps}: {mapped} with the size of the map");
    println!("time of a band with many new blocks: {timed} of {aggressive} that clean when idle");
    wrong.extend(record.uncalibrated());
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    for (what, said) in [("cache", sized), ("bands", banded)] {
        assert!(said * 10 >= managed * 9, "{what}: {said} of {managed}");
    }
    assert!(timed * 2 > aggressive, "{timed} of {aggressive}");
}

/// A drive that is not drive-managed, and not conventional either.
fn other(seed: u64) -> (Model, DriveType) {
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
    // Of a host-managed disk the tracks, of a host-aware one the translation layer too.
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

#[test]
fn drives_with_zones_and_flash_are_never_called_drive_managed() {
    let first = number("SKYLIGHT_SEED", 1);
    for seed in first..first + number("SKYLIGHT_DRIVES", 40) {
        let (mut model, kind) = other(seed);
        let options = Options { quick: false, seed };
        let (found, _, result) = examine(&mut model, options, &mut |_| {});
        assert_eq!(result, Ok(()), "seed {seed} {:?} {kind:?}", found.unknown);
        let found_kind = found.drive_type.map(|f| f.value);
        assert_eq!(found_kind, Some(kind), "seed {seed}: {found:?}");
    }
}

/// Answers up to half a millisecond late, and a thousandth of the requests held up by 10 to 100 ms.
fn noise() -> NoiseShape {
    NoiseShape {
        jitter_most_us: number("SKYLIGHT_JITTER_US", 500) as f64,
        outliers_per_million: 1_000.0,
        outlier_least_ms: 10.0,
        outlier_most_ms: 100.0,
        ..NoiseShape::default()
    }
}

/// What noise hides is not said; what is said is right.
#[test]
fn noise_hides_little_and_makes_nothing_wrong() {
    let (mut wrong, mut silent) = (Vec::new(), Vec::new());
    let (first, drives) = (number("SKYLIGHT_SEED", 1), number("SKYLIGHT_DRIVES", 8));
    for seed in first..first + drives {
        let (mut profile, hidden) = hidden(seed);
        profile.noise = Some(noise());
        let model = Model::new(profile, seed).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        // How large things are, and what conventional disks are like, is no part of it.
        let limits = Limits::default();
        let interrupted = limits.interrupted.clone();
        let options = Options { quick: false, seed };
        let (found, _, _) = examine(&mut model.with_limits(limits), options, &mut |what| {
            let behind = ["cache bands", "test 14"];
            let over = behind.iter().any(|step| what.starts_with(step));
            interrupted.fetch_or(over, Ordering::Relaxed);
        });
        let unknown = &found.unknown;
        let mut check = |what: &str, found: Option<String>, hidden: Option<String>| {
            let list = if found.is_none() {
                &mut silent
            } else {
                &mut wrong
            };
            if found != hidden {
                println!("seed {seed}: {what}: {found:?}, but it is {hidden:?}; {unknown:?}");
                list.push(seed);
            }
        };
        let kind = found.drive_type.map(|f| format!("{:?}", f.value));
        check("kind", kind, Some(format!("{:?}", hidden.kind)));
        let cache = |cache| format!("{cache:?}");
        let said = found.cache_type.map(|f| cache(f.value));
        check("cache", said, hidden.cache.map(cache));
        let mapping = |mapping| format!("{mapping:?}");
        let said = found.mapping.map(|f| mapping(f.value));
        check("mapping", said, hidden.mapping.map(mapping));
        let cleaning = |cleaning| format!("{cleaning:?}");
        let said = found.cleaning.map(|f| cleaning(f.value));
        check("cleaning", said, hidden.cleaning.map(cleaning));
    }
    silent.dedup();
    println!(
        "{drives} drives: {} not said in full {silent:?}, wrong {wrong:?}",
        silent.len()
    );
    assert!(wrong.is_empty(), "wrong: {wrong:?}");
    assert!(silent.len() as u64 * 20 <= drives, "not said: {silent:?}");
}
