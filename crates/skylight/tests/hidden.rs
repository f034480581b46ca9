//! Random drives that Skylight knows nothing of. The seed of a failing one is printed;
//! `SKYLIGHT_DRIVES` says how many there are (40), `SKYLIGHT_SEED` where they begin.
#![allow(clippy::unwrap_used)]

use drive_model::flash::{FlashProfile, ManagementShape};
use drive_model::layer::{
    CachePlace as Place, FullyAssociativeShape, SeagateShape, SetAssociativeShape,
};
use drive_model::mechanics::{SeekTimes, Shape, Stroke};
use drive_model::profile::LayerShape;
use drive_model::{ConventionalPlace, DiskZones, Electronics, Profile};
use skylight::finding::{CachePlace, CacheType, CleaningType, DriveType, Mapping};
use skylight::{Model, Options, Random, examine};
use zone::ZoneKind;

const MIB: u64 = 256;
const GIB: u64 = 1024 * MIB;

/// What is hidden in a drive, as far as it can be found.
#[derive(Debug)]
struct Hidden {
    kind: DriveType,
    cache: Option<CacheType>,
    place: Option<CachePlace>,
    cache_blocks: u64,
    /// Blocks of a band at the beginning, in the middle and at the end of the drive.
    bands: Vec<u64>,
    mapping: Option<Mapping>,
    cleaning: Option<CleaningType>,
    map_entries: Option<u64>,
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
    let outer = between(r, 250, 560) as u32;
    let inner = outer * between(r, 45, 65) as u32 / 100;
    let heads = between(r, 2, 12) as u32;
    let idle = (r.below(2) == 0).then(|| between(r, 500, 2_000) as f64);
    let long = r.below(2) == 0;
    let mean_track = u64::from(outer + inner) / 2;
    let class = r.below(5);
    let extra = if class == 4 {
        160 * GIB
    } else {
        blocks / 8 + 60 * GIB
    };
    let cylinders = (blocks + extra) / mean_track / u64::from(heads) + 1;
    let track_to_track_ms = between(r, 3, 8) as f64 / 10.0;
    let full_stroke_ms = between(r, 14, 24) as f64;
    let mut shape = Shape {
        rpm: [5_400, 5_900, 7_200][r.below(3) as usize],
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
    let cache = magnitude(r, GIB, 24 * GIB);
    let band = between(r, 10 * MIB, 60 * MIB);
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
            // At least 1 % of the disk, as the main document has it, so that a cache band has no
            // more than a hundred data bands.
            let cache_bands = (cache.max(blocks / 100) / band).max(16) as u32;
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
            let zone_data_bands = (between(r, 20 * GIB, 60 * GIB) / band) as u32;
            let zones = blocks / (u64::from(zone_data_bands) * band);
            let zone_cache_bands = (cache.max(blocks / 100) / band / zones).max(8) as u32;
            expected.place = Some(CachePlace::Multiple);
            expected.cache_blocks = u64::from(zone_cache_bands) * band * zones;
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
            let entries = between(r, 8_000, 30_000) as u32;
            let map = between(r, 50_000, 250_000) as u32;
            let band_tracks = between(r, 10, 30) as u32;
            // More than the map has in small writes, less than the log has in large ones.
            let payload = between(r, 3 * GIB, 12 * GIB) as u32;
            expected.place = Some(CachePlace::Outer);
            expected.cache_blocks = u64::from(payload);
            expected.cleaning = Some(CleaningType::Aggressive);
            expected.map_entries = Some(u64::from(map));
            // Of the recording zone that the middle of each of the tested regions is in.
            expected.bands = Vec::new();
            LayerShape::Seagate(SeagateShape {
                cache_half_tracks: entries * 5,
                half_track_payload_blocks: outer * 45 / 100,
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

fn off(found: u64, hidden: u64) -> f64 {
    found as f64 / hidden as f64 - 1.0
}

#[test]
fn hidden_drives_are_found_out() {
    let (mut timed, mut aggressive) = (0, 0);
    let mut wrong = Vec::new();
    let mut worst: [(f64, u64); 2] = [(0.0, 0); 2];
    let first = number("SKYLIGHT_SEED", 1);
    for seed in first..first + number("SKYLIGHT_DRIVES", 40) {
        let (profile, hidden) = hidden(seed);
        let mut model = Model::new(profile, seed).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let options = Options { quick: false, seed };
        let (found, _, result) = examine(&mut model, options, &mut |_| {});
        assert_eq!(result, Ok(()));
        let mut check = |what: &str, ok: bool| {
            if !ok {
                wrong.push(format!("seed {seed}: {what}: {hidden:?} {found:?}"));
            }
        };
        check(
            "kind",
            found.drive_type.map(|f| f.value) == Some(hidden.kind),
        );
        check("cache", found.cache_type.map(|f| f.value) == hidden.cache);
        check("place", found.cache_place.map(|f| f.value) == hidden.place);
        check(
            "cleaning",
            found.cleaning.map(|f| f.value) == hidden.cleaning,
        );
        check("mapping", found.mapping.map(|f| f.value) == hidden.mapping);
        check("a day", found.seconds < 86_400.0);
        if hidden.kind == DriveType::Conventional {
            continue;
        }
        let cache = off(
            found.cache_bytes.map_or(0, |size| size.value) / 4096,
            hidden.cache_blocks,
        );
        check("size of the cache", cache.abs() < 0.05);
        if cache.abs() > worst[0].0 {
            worst[0] = (cache.abs(), seed);
        }
        if let Some(map) = hidden.map_entries {
            check(
                "map",
                off(found.map_entries.map_or(0, |size| size.value), map).abs() < 0.05,
            );
        }
        let times = found.band_cleaning_ms.zip(found.band_cleaning_many_ms);
        check(
            "more of a band takes longer",
            times.is_none_or(|(one, many)| many > 0.9 * one),
        );
        timed += u32::from(times.is_some());
        aggressive += u32::from(hidden.cleaning == Some(CleaningType::Aggressive));
        check("bands", found.band_bytes.len() == 3);
        for (bytes, band) in found.band_bytes.iter().zip(&hidden.bands) {
            let band = off(bytes / 4096, *band);
            check("size of a band", band.abs() < 0.01);
            if band.abs() > worst[1].0 {
                worst[1] = (band.abs(), seed);
            }
        }
    }
    println!(
        "farthest off: cache {:?}, band {:?} (part, seed)",
        worst[0], worst[1]
    );
    println!("time of a band with many new blocks: {timed} of {aggressive} that clean when idle");
    assert!(timed * 2 > aggressive, "{timed} of {aggressive}");
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
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
