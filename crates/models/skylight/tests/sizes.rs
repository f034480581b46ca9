//! Sizes that are not reached because another limit comes first, and caches whose bands are shared.

use drive_model::profile::LayerShape;
use drive_model::{BLOCK_BYTES, Profile, Request, Span, Time};
use skylight::finding::{Bound, Size};
use skylight::target::Answer;
use skylight::{Findings, Model, Options, Target, TargetError, examine};
use std::ops::ControlFlow;

const MIB: u64 = 256;

/// Examines a drive of a profile, with a tenth of its capacity and another layer.
fn found(name: &str, change: impl FnOnce(&mut LayerShape)) -> Findings {
    let mut profile = Profile::named(name).unwrap();
    profile.capacity_bytes /= 10;
    change(&mut profile.layer);
    let mut model = Model::new(profile, 1).unwrap();
    let options = Options {
        quick: false,
        seed: 7,
    };
    let (findings, _, result) = examine(&mut model, options, &mut |_| {});
    assert_eq!(result, Ok(()));
    findings
}

fn seagate(cache_half_tracks: u32, map_extents: u32) -> Findings {
    found("st5000as0011", |layer| {
        let LayerShape::Seagate(shape) = layer else {
            panic!("{layer:?}")
        };
        shape.cache_half_tracks = cache_half_tracks;
        shape.map_extents = map_extents;
    })
}

fn near(found: Option<Size>, at_least: Option<Bound>, expected: u64) {
    let found = found.unwrap();
    let off = found.value as f64 / expected as f64 - 1.0;
    assert!(off.abs() < 0.01, "{found:?}, {expected}");
    assert_eq!(found.at_least, at_least, "{found:?}");
}

/// The profile's cache takes 16.8 GiB; with writes of 256 KiB the map is full after 9.
#[test]
fn a_map_that_is_full_first_is_not_taken_for_the_cache() {
    let found = seagate(114_000, 36_864);
    near(found.map_entries, None, 36_864);
    near(found.cache_bytes, None, 4_398_000 * BLOCK_BYTES);
}

/// 4,400 entries of 31 writes; the map of the profile has 182,250.
#[test]
fn a_journal_that_is_full_first_is_not_taken_for_the_map() {
    let found = seagate(22_000, 182_250);
    near(found.map_entries, Some(Bound::Journal), 4_400 * 31);
    let size = found.cache_bytes.unwrap();
    assert_eq!(size.at_least, Some(Bound::Journal), "{size:?}");
    assert!(size.value < 4_398_000 * BLOCK_BYTES, "{size:?}");
}

/// With 2.5 data bands for each of the cache's, an even fill stalls at five sixths of it.
#[test]
fn shared_cache_bands_are_counted_whatever_the_remainder() {
    for thousandths in [2_500, 20_050] {
        let mut all = 0;
        let found = found("emulated-smr-1", |layer| {
            let LayerShape::SetAssociative(shape) = layer else {
                panic!("{layer:?}")
            };
            shape.band_blocks = 40 * MIB as u32;
            let data_bands = 390_000_000_000 / BLOCK_BYTES / (40 * MIB);
            shape.cache_bands = (data_bands * 1_000 / thousandths) as u32;
            all = u64::from(shape.cache_bands) * 40 * MIB;
        });
        near(found.cache_bytes, None, all * BLOCK_BYTES);
        let shared = found.data_bands_per_cache_band.unwrap();
        let off = shared * 1e3 / thousandths as f64 - 1.0;
        assert!(off.abs() < 0.01, "{thousandths}: {shared}");
    }
}

/// Two bands that were cleaned in the time by which a pause grew looked like one.
#[test]
fn bands_that_are_cleaned_sooner_than_a_pause_grows_are_told_apart() {
    let found = found("emulated-smr-2", |layer| {
        let LayerShape::SetAssociative(shape) = layer else {
            panic!("{layer:?}")
        };
        shape.band_blocks = 8 * MIB as u32;
        shape.idle_before_cleaning_ms = Some(2_000.0);
    });
    assert_eq!(found.band_bytes, [Some(8 << 20); 3]);
    let ms = found.band_cleaning_ms.unwrap();
    assert!(ms < 200.0, "{ms}");
}

/// A model's drive with other properties.
struct Other {
    model: Model,
    has_erase: bool,
    /// Writes after which each time one takes 300 ms longer, for the drive's own purposes.
    own: Option<u64>,
    writes: u64,
}

impl Other {
    fn new(model: Model) -> Self {
        Self {
            model,
            has_erase: true,
            own: None,
            writes: 0,
        }
    }
}

impl Target for Other {
    fn blocks(&self) -> u64 {
        self.model.blocks()
    }

    fn now(&self) -> Time {
        self.model.now()
    }

    fn run(
        &mut self,
        depth: usize,
        requests: &mut dyn Iterator<Item = Request>,
        watch: &mut dyn FnMut(&Answer) -> ControlFlow<()>,
    ) -> Result<(), TargetError> {
        let (own, writes) = (self.own, &mut self.writes);
        self.model.run(depth, requests, &mut |answer| {
            let is_write = answer.request.operation.is_write();
            *writes += u64::from(is_write);
            let is_longer = is_write && own.is_some_and(|own| writes.is_multiple_of(own));
            let longer = if is_longer { 300.0 } else { 0.0 };
            watch(&Answer {
                latency: answer.latency + Span::from_millis(longer),
                ..*answer
            })
        })
    }

    fn pause(&mut self, span: Span) {
        self.model.pause(span);
    }

    fn set_volatile_cache(&mut self, on: bool) -> bool {
        self.model.set_volatile_cache(on)
    }

    fn set_look_ahead(&mut self, on: bool) -> bool {
        self.model.set_look_ahead(on)
    }

    fn erase(&mut self) -> bool {
        self.has_erase && self.model.erase()
    }

    fn can_erase(&self) -> bool {
        self.has_erase
    }
}

/// Zones are cleaned one after the other, so that those at the end are full for as long as any is.
#[test]
fn a_cache_that_cannot_be_erased_is_measured_empty_or_not_at_all() {
    for (part, is_known) in [(10, true), (1, false)] {
        let mut profile = Profile::named("emulated-smr-3").unwrap();
        profile.capacity_bytes /= part;
        let LayerShape::FullyAssociative(shape) = &profile.layer else {
            panic!("{:?}", profile.layer)
        };
        let zone = u64::from(shape.zone_data_bands) * u64::from(shape.band_blocks);
        let cache = u64::from(shape.zone_cache_bands) * u64::from(shape.band_blocks);
        let all = profile.capacity_bytes / BLOCK_BYTES / zone * cache * BLOCK_BYTES;
        let mut target = Other::new(Model::new(profile, 1).unwrap());
        target.has_erase = false;
        let options = Options {
            quick: false,
            seed: 7,
        };
        let (found, _, result) = examine(&mut target, options, &mut |_| {});
        assert_eq!(result, Ok(()));
        println!("{found:?}");
        let unknown = |why: &String| why.contains("not all that was written had been cleaned");
        assert_eq!(
            found.unknown.iter().any(unknown),
            !is_known,
            "{:?}",
            found.unknown
        );
        let Some(size) = found.cache_bytes else {
            assert!(!is_known);
            continue;
        };
        assert!(is_known);
        let off = size.value as f64 / all as f64 - 1.0;
        assert!(
            off.abs() < 0.05 && size.at_least.is_none(),
            "{size:?}, {all}"
        );
    }
}

#[test]
fn a_disk_of_a_few_mebibytes_is_not_looked_into() {
    let mut profile = Profile::named("seagate-cmr").unwrap();
    profile.capacity_bytes = 10 << 20;
    let mut model = Model::new(profile, 1).unwrap();
    let options = Options {
        quick: false,
        seed: 7,
    };
    let (found, _, result) = examine(&mut model, options, &mut |_| {});
    assert_eq!(result, Ok(()));
    assert_eq!(found.sequential_bytes_per_second, None);
    assert!(!found.unknown.is_empty());
}

#[test]
fn a_drive_that_is_busy_with_itself_has_not_cleaned() {
    let mut profile = Profile::named("emulated-smr-2").unwrap();
    profile.capacity_bytes /= 10;
    let mut target = Other::new(Model::new(profile, 1).unwrap());
    target.own = Some(240);
    let options = Options {
        quick: false,
        seed: 7,
    };
    let (found, _, result) = examine(&mut target, options, &mut |_| {});
    assert_eq!(result, Ok(()));
    assert_eq!(found.band_bytes, [Some(25 << 20); 3], "{found:?}");
}

/// The size at the end of the drive is not that in the middle.
#[test]
fn a_place_without_a_size_stays_empty() {
    let mut found = found("emulated-smr-2", |_| ());
    let blocks = 390_000_000_000 / BLOCK_BYTES;
    let hours = |found: &Findings| skylight::meaning::meaning(found, blocks).hours_of_cleaning;
    assert!(hours(&found).is_some(), "{found:?}");
    found.band_bytes[1] = None;
    assert_eq!(hours(&found), None);
}
