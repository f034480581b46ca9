//! Skylight's tests on models of the drives of the thesis CMU-CS-20-130, chapter 2 (tables 2.1 and 2.3), and of
//! others.

use crate::expected::Expected;
use crate::experiment::{Experiment, Outcome, Run, Stopped};
use skylight::finding::{CachePlace, CacheType, CleaningType, DriveType, Mapping, Shingling, Size};
use skylight::html::figures::figures;
use skylight::target::limits::Limits;
use skylight::{Findings, Model, Options, examine, examine_for_figures};

const GIB: f64 = 1_073_741_824.0;
const MIB: f64 = 1_048_576.0;
const HOURS: &str = "h of the drive's time";

/// Figures that the paper shows of emulated drives, of conventional ones, and of the Seagate.
const OF_EMULATED: &[&str] = &["2.4", "2.8", "2.10", "2.19", "2.21"];
const OF_CONVENTIONAL: &[&str] = &["2.4", "2.26"];
const OF_SEAGATE: &[&str] = &[
    "2.4", "2.7", "2.8", "2.10", "2.12", "2.13", "2.15", "2.16", "2.17", "2.18", "2.19", "2.21",
    "2.22", "2.26",
];

/// Examines a drive, and draws the figures in `shown` from the samples.
fn look(
    run: &mut Run<'_>,
    outcome: &mut Outcome,
    name: &str,
    shown: &[&str],
) -> Result<Findings, Stopped> {
    run.next(name)?;
    let limits = Limits {
        interrupted: run.interrupted.clone(),
        ..Limits::default()
    };
    let mut model = Model::named(name, run.seed)?.with_limits(limits);
    let options = Options {
        quick: false,
        seed: run.seed,
    };
    let progress = &mut run.progress;
    let mut next = |what: &str| progress(&format!("{name}: {what}"));
    let examine = if run.figures && !shown.is_empty() {
        examine_for_figures
    } else {
        examine
    };
    let (findings, seen, result) = examine(&mut model, options, &mut next);
    result?;
    if run.figures {
        let all = figures(&seen).into_iter();
        let all = all.filter(|figure| shown.contains(&figure.number));
        let named = all.map(|figure| (format!("{}-{name}", figure.number), figure));
        outcome.figures.extend(named);
    }
    Ok(findings)
}

/// 1 if a finding exists and is the expected one, else 0.
fn is<T: PartialEq>(found: Option<T>, expected: T) -> f64 {
    f64::from(found == Some(expected))
}

fn exact(size: Option<Size>, unit: f64) -> f64 {
    let size = size.filter(|size| size.at_least.is_none());
    size.map_or(f64::NAN, |size| size.value as f64 / unit)
}

fn number(found: Option<impl Into<f64>>) -> f64 {
    found.map_or(f64::NAN, Into::into)
}

/// An emulated drive of table 2.1.
struct Emulated {
    name: &'static str,
    cache_type: CacheType,
    place: Option<CachePlace>,
    /// Size in GiB, and the share that a test may miss: a cache in several places begins to clean in the last quarter
    /// of a band of its last place.
    cache: (f64, f64),
    band_mib: f64,
    cleaning: CleaningType,
    mapping: Mapping,
}

const EMULATED: [Emulated; 3] = [
    Emulated {
        name: "emulated-smr-1",
        cache_type: CacheType::Disk,
        place: Some(CachePlace::Inner),
        cache: (37.2, 0.005),
        band_mib: 40.0,
        cleaning: CleaningType::Lazy,
        mapping: Mapping::Static,
    },
    Emulated {
        name: "emulated-smr-2",
        cache_type: CacheType::Flash,
        place: None,
        cache: (9.98, 0.005),
        band_mib: 25.0,
        cleaning: CleaningType::Lazy,
        mapping: Mapping::Static,
    },
    Emulated {
        name: "emulated-smr-3",
        cache_type: CacheType::Disk,
        place: Some(CachePlace::Multiple),
        cache: (37.2, 0.02),
        band_mib: 20.0,
        cleaning: CleaningType::Aggressive,
        mapping: Mapping::Dynamic,
    },
];

pub const TABLE_2_1: Experiment = Experiment {
    id: "table-2.1",
    title: "The emulated drives, inferred by Skylight",
    source: "CMU-CS-20-130, section 2.3",
    expected: || {
        let mut all = Vec::new();
        for drive in &EMULATED {
            let row = |what: &str| format!("{}: {what}", drive.name);
            let (gib, part) = drive.cache;
            all.extend([
                Expected::yes(row("drive-managed")),
                Expected::yes(row("cache type as configured")),
            ]);
            // A flash cache has no place on the disk.
            if drive.place.is_some() {
                all.push(Expected::yes(row("cache place as configured")));
            }
            all.extend([
                Expected::value(row("persistent cache"), "GiB", gib).part(part),
                Expected::value(row("regions with bands"), "", 3.0).ours(),
                Expected::value(row("smallest band"), "MiB", drive.band_mib).part(0.005),
                Expected::value(row("largest band"), "MiB", drive.band_mib).part(0.005),
                Expected::yes(row("cleaning as configured")),
                Expected::yes(row("mapping as configured")),
            ]);
            // Where bands share one of the cache's, too few small writes are made to tell.
            if drive.mapping == Mapping::Dynamic {
                all.push(Expected::yes(row("block-mapped")));
            }
            all.extend([
                Expected::value(row("surfaces"), "", 8.0),
                Expected::yes(row("strokes are too short for a direction of shingling")).ours(),
                Expected::no(row("torn writes")).ours(),
                Expected::yes(row("that nothing is torn is no proof")).ours(),
                Expected::at_most(row("time"), HOURS, 24.0).ours(),
            ]);
        }
        all
    },
    measure: |run| {
        let mut outcome = Outcome::default();
        for drive in &EMULATED {
            let f = look(run, &mut outcome, drive.name, OF_EMULATED)?;
            let bands: Vec<f64> = f.bands().map(|bytes| bytes as f64 / MIB).collect();
            let bands = bands.into_iter();
            outcome.measured.extend([
                is(f.drive_type.map(|f| f.value), DriveType::DriveManaged),
                is(f.cache_type.map(|f| f.value), drive.cache_type),
            ]);
            let place = drive
                .place
                .map(|place| is(f.cache_place.map(|f| f.value), place));
            outcome.measured.extend(place);
            outcome.measured.extend([
                exact(f.cache_bytes, GIB),
                f.bands().count() as f64,
                bands.clone().fold(f64::INFINITY, f64::min),
                bands.fold(0.0, f64::max),
                is(f.cleaning.map(|f| f.value), drive.cleaning),
                is(f.mapping.map(|f| f.value), drive.mapping),
            ]);
            if drive.mapping == Mapping::Dynamic {
                let tried = f.map_entries.is_some() && f.map_limit().is_none();
                outcome.measured.push(f64::from(tried));
            }
            outcome.measured.extend([
                number(f.surfaces.map(|f| f.value as f64)),
                f64::from(f.shingling.is_none()),
                number(f.torn_writes.map(|f| f.value)),
                f64::from(f.torn_writes.is_some_and(|f| f.confidence < 1.0)),
                f.seconds / 3600.0,
            ]);
        }
        Ok(outcome)
    },
};

/// The shares of the persistent cache and of its map that are filled when cleaning begins: 16.8 of the printed 20
/// GiB, and 182,200 of 200,000 entries.
const CACHE_LOW_WATERMARK: f64 = 0.84;
const MAP_LOW_WATERMARK: f64 = 0.911;

/// A drive of table 2.3.
struct Seagate {
    name: &'static str,
    shown: &'static [&'static str],
    cache_gib: f64,
    map_entries: f64,
    bands_mib: (f64, f64),
    zones_gib: (f64, f64),
    surfaces: f64,
}

const SEAGATES: [Seagate; 2] = [
    Seagate {
        name: "st5000as0011",
        shown: OF_SEAGATE,
        cache_gib: 20.0,
        map_entries: 200_000.0,
        bands_mib: (17.0, 36.0),
        zones_gib: (4.0, 20.0),
        surfaces: 8.0,
    },
    Seagate {
        name: "st8000as0002",
        shown: &[],
        cache_gib: 25.0,
        map_entries: 250_000.0,
        bands_mib: (15.0, 40.0),
        zones_gib: (5.0, 40.0),
        surfaces: 12.0,
    },
];

pub const TABLE_2_3: Experiment = Experiment {
    id: "table-2.3",
    title: "The Seagate drives, inferred by Skylight",
    source: "CMU-CS-20-130, sections 2.4.3 to 2.4.12 and 2.5",
    expected: || {
        let mut all = Vec::new();
        for drive in &SEAGATES {
            let row = |what: &str| format!("{}: {what}", drive.name);
            // The second drive was on loan: its head was not observed, its power not cut, and its streaming not
            // measured.
            let of_first = |expected: Expected| {
                if drive.name == SEAGATES[0].name {
                    expected
                } else {
                    expected.ours()
                }
            };
            all.extend([
                Expected::yes(row("drive-managed")),
                Expected::yes(row("cache on the disk")),
                Expected::yes(row("cache at the outer diameter")),
                // The printed numbers are all of the cache and the map, which is more than can be written before
                // cleaning.
                Expected::value(
                    row("persistent cache (written ÷ 0.84)"),
                    "GiB",
                    drive.cache_gib,
                )
                .part(0.02),
                Expected::value(row("map (written ÷ 0.911)"), "entries", drive.map_entries)
                    .part(0.02),
                Expected::value(row("smallest band"), "MiB", drive.bands_mib.0).part(0.04),
                Expected::value(row("largest band"), "MiB", drive.bands_mib.1).part(0.04),
                Expected::yes(row("static mapping")),
                Expected::yes(row("aggressive cleaning")),
                Expected::yes(row("cleaned in the order of writing")),
                of_first(Expected::yes(row("cache is a circular log"))),
                Expected::value(row("a band with one block"), "s", 0.6).by(0.1),
                Expected::value(row("a band with 512 blocks"), "s", 1.6).part(0.1),
                of_first(Expected::value(row("writes stream from"), "MiB", 8.0)),
                of_first(Expected::yes(row("shingled towards the middle"))),
                of_first(Expected::yes(row("torn writes"))),
                of_first(Expected::yes(row("serpentine in the middle (figure 2.25)"))),
                Expected::value(row("smallest zone"), "GiB", drive.zones_gib.0).by(0.5),
                Expected::value(row("largest zone"), "GiB", drive.zones_gib.1).by(0.5),
                Expected::value(row("surfaces"), "", drive.surfaces),
                Expected::at_most(row("time"), HOURS, 24.0).ours(),
            ]);
        }
        let writes = "st5000as0011: writes until full (table 2.2)";
        all.push(Expected::value(writes, "", 22_800.0).part(0.01));
        all
    },
    measure: |run| {
        let mut outcome = Outcome::default();
        let mut writes = f64::NAN;
        for drive in &SEAGATES {
            let f = look(run, &mut outcome, drive.name, drive.shown)?;
            let mib = |bytes: Option<u64>| bytes.map_or(f64::NAN, |bytes| bytes as f64 / MIB);
            let (least, most) = f.zone_bytes.unwrap_or_default();
            outcome.measured.extend([
                is(f.drive_type.map(|f| f.value), DriveType::DriveManaged),
                is(f.cache_type.map(|f| f.value), CacheType::Disk),
                is(f.cache_place.map(|f| f.value), CachePlace::Outer),
                exact(f.cache_bytes, GIB) / CACHE_LOW_WATERMARK,
                exact(f.map_entries, 1.0) / MAP_LOW_WATERMARK,
                mib(f.bands().min()),
                mib(f.bands().max()),
                is(f.mapping.map(|f| f.value), Mapping::Static),
                is(f.cleaning.map(|f| f.value), CleaningType::Aggressive),
                is(f.fifo.map(|f| f.value), true),
                is(f.circular_log.map(|f| f.value), true),
                number(f.band_cleaning_ms) / 1e3,
                number(f.band_cleaning_many_ms) / 1e3,
                f.stream_bytes.map_or(f64::NAN, |bytes| bytes as f64 / MIB),
                is(f.shingling.map(|f| f.value), Shingling::TowardsMiddle),
                is(f.torn_writes.map(|f| f.value), true),
                is(f.serpentine_middle.map(|f| f.value), true),
                least as f64 / GIB,
                most as f64 / GIB,
                number(f.surfaces.map(|f| f.value as f64)),
                f.seconds / 3600.0,
            ]);
            if writes.is_nan() {
                writes = f.writes_until_full.map_or(f64::NAN, |writes| writes as f64);
            }
        }
        outcome.measured.push(writes);
        Ok(outcome)
    },
};

pub const WD40NMZW: Experiment = Experiment {
    id: "wd40nmzw",
    title: "A drive that cleans while it is written to, inferred by Skylight",
    source: "CMU-CS-20-130, section 3.4.3; its sizes are the profile's",
    expected: || {
        vec![
            Expected::yes("dynamic mapping"),
            // Its map has more entries than test 7 writes; the small writes of test 8 fill it.
            Expected::value("map", "entries", 500_000.0)
                .part(0.01)
                .ours(),
            Expected::value("persistent cache", "GiB", 48.0)
                .part(0.01)
                .ours(),
            Expected::yes("no count of writes until it cleans").ours(),
            Expected::yes("bands are cleaned before a pause"),
            Expected::value("regions with bands", "", 3.0).ours(),
            Expected::value("smallest band", "MiB", 32.0)
                .part(0.005)
                .ours(),
            Expected::value("largest band", "MiB", 32.0)
                .part(0.005)
                .ours(),
        ]
    },
    measure: |run| {
        let mut outcome = Outcome::default();
        let f = look(run, &mut outcome, "wd40nmzw", &[])?;
        let bands: Vec<f64> = f.bands().map(|bytes| bytes as f64 / MIB).collect();
        let bands = bands.into_iter();
        outcome.measured = vec![
            is(f.mapping.map(|f| f.value), Mapping::Dynamic),
            exact(f.map_entries, 1.0),
            exact(f.cache_bytes, GIB),
            f64::from(f.writes_until_full.is_none()),
            is(f.cleans_while_written, true),
            f.bands().count() as f64,
            bands.clone().fold(f64::INFINITY, f64::min),
            bands.fold(0.0, f64::max),
        ];
        Ok(outcome)
    },
};

/// Drives without a persistent cache, with their kinds.
const OTHERS: [(&str, DriveType, &[&str]); 6] = [
    ("seagate-cmr", DriveType::Conventional, OF_CONVENTIONAL),
    ("wd5000ys", DriveType::Conventional, &[]),
    ("hua72303", DriveType::Conventional, &[]),
    ("hm-smr-14tb", DriveType::HostManaged, &[]),
    ("zns-zn540", DriveType::HostManaged, &[]),
    ("ssd-15gb", DriveType::Flash, &[]),
];

pub const KINDS: Experiment = Experiment {
    id: "drive-kinds",
    title: "Drives without a persistent cache are not called drive-managed",
    source: "what the drives are",
    expected: || {
        let row = |(name, kind, _)| Expected::yes(format!("{name}: {kind:?}")).ours();
        OTHERS.map(row).to_vec()
    },
    measure: |run| {
        let mut outcome = Outcome::default();
        for (name, kind, shown) in OTHERS {
            let found = look(run, &mut outcome, name, shown)?.drive_type;
            outcome.measured.push(is(found.map(|f| f.value), kind));
        }
        Ok(outcome)
    },
};
