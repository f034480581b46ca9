//! The findings in the words of the main document's table 2.3, and advice for the owner of the drive.

use crate::finding::{
    Bound, CachePlace, CacheType, CleaningType, DriveType, Finding, Findings, Mapping, Shingling,
    Size,
};
use crate::meaning::{Meaning, meaning};
pub use crate::row::Row;

const MIB: f64 = 1048576.0;
const GIB: f64 = 1024.0 * MIB;

/// A drive that writes journal entries and has a bounded map may begin to clean before map and cache are
/// full. The main document assumes so of the ST5000AS0011 and takes 200,000 entries for 182,231 (table 2.2)
/// and 20 GiB for 16.78. Nobody knows these parts of another drive, so what was measured comes first.
const MAP_LOW_WATERMARK: f64 = 0.911;
const CACHE_LOW_WATERMARK: f64 = 0.84;

/// Least confidence with which the owner is told that data is safe.
const SURE: f64 = 0.9;

fn decided<T>(
    property: &'static str,
    finding: Option<&Finding<T>>,
    value: impl Fn(&T) -> &'static str,
) -> Option<Row> {
    decided_as(property, finding, |found| value(found).into())
}

fn decided_as<T>(
    property: &'static str,
    finding: Option<&Finding<T>>,
    value: impl Fn(&T) -> String,
) -> Option<Row> {
    finding.map(|finding| Row {
        property,
        value: value(&finding.value),
        confidence: Some(finding.confidence),
    })
}

/// The row, or what is to be said where there is none.
fn or_not(row: Option<Row>, not: Option<(&'static str, &'static str)>) -> Option<Row> {
    row.or_else(|| not.and_then(|(property, value)| measured(property, Some(value.into()))))
}

/// Two sizes of what lies on a surface before the next one's turn.
fn stretch(least: u64, most: u64) -> String {
    let (unit, name) = if most as f64 >= GIB {
        (GIB, "GiB")
    } else {
        (MIB, "MiB")
    };
    let (least, most) = (least as f64 / unit, most as f64 / unit);
    format!("{least:.0}–{most:.0} {name} on one surface, then the next")
}

/// A time, or a range of times if its ends can be distinguished.
fn seconds(least_ms: f64, most_ms: Option<f64>) -> String {
    let tenths = |ms: f64| format!("{:.1}", ms / 1e3);
    let least = tenths(least_ms);
    match most_ms.map(tenths) {
        Some(most) if most != least => format!("{least}–{most} s"),
        _ => format!("{least} s"),
    }
}

const fn at_least(size: Size) -> &'static str {
    if size.at_least.is_some() {
        "at least "
    } else {
        ""
    }
}

/// Why a size is only a lower bound.
const fn because(size: Size) -> &'static str {
    match size.at_least {
        None => "",
        Some(Bound::Map) => ": the map was full first",
        Some(Bound::Journal) => ": the journal was full first",
        Some(Bound::Part) => ": a part of it was full first",
        Some(Bound::Test) => ": no more was written",
    }
}

fn measured(property: &'static str, value: Option<String>) -> Option<Row> {
    value.map(|value| Row {
        property,
        value,
        confidence: None,
    })
}

/// The known rows of table 2.3.
pub fn rows(f: &Findings) -> Vec<Row> {
    let journals = f.has_journal;
    let managed = f.drive_type.map(|kind| kind.value) == Some(DriveType::DriveManaged);
    let is_lazy = f.cleaning.map(|cleaning| cleaning.value) == Some(CleaningType::Lazy);
    let fixed = f.mapping.map(|mapping| mapping.value) == Some(Mapping::Static);
    let structure = f.sequential_bytes_per_second.is_some();
    let cache = |size: Size| {
        let found = size.value as f64 / GIB;
        let shared = f.data_bands_per_cache_band;
        let more = if journals && size.at_least.is_none() {
            let all = found / CACHE_LOW_WATERMARK;
            format!(" until cleaning begins ({all:.0} GiB if that is 84 % of it)")
        } else {
            shared.map_or_else(String::new, |bands| {
                format!(", each band of it for {bands:.1} bands of data")
            })
        };
        format!("{}{found:.2} GiB{more}{}", at_least(size), because(size))
    };
    let bands = || {
        let (least, most) = (f.bands().min()?, f.bands().max()?);
        let mib = |bytes: u64| (bytes as f64 / MIB).round();
        Some(if mib(least) == mib(most) {
            format!("{} MiB", mib(least))
        } else {
            format!("{}–{} MiB", mib(least), mib(most))
        })
    };
    let map = |size: Size| {
        let entries = size.value;
        if size.at_least == Some(Bound::Test) {
            return format!("no limit met in {entries} small writes");
        }
        let more = if journals && size.at_least.is_none() {
            let all = entries as f64 / MAP_LOW_WATERMARK / 1e3;
            format!(" until cleaning begins ({all:.0},000 entries if that is 91 % of it)")
        } else {
            String::new()
        };
        format!("{}{entries} writes{more}{}", at_least(size), because(size))
    };
    [
        decided("Drive type", f.drive_type.as_ref(), |kind| match kind {
            DriveType::Conventional => "conventional",
            DriveType::DriveManaged => "SMR, drive-managed",
            DriveType::HostManaged => "zoned, host-managed",
            DriveType::HostAware => "zoned, host-aware",
            DriveType::Flash => "flash",
        }),
        decided(
            "Persistent cache type",
            f.cache_type.as_ref(),
            |cache| match cache {
                CacheType::Disk => "disk",
                CacheType::Flash => "flash",
            },
        ),
        decided(
            "Cache layout and location",
            f.cache_place.as_ref(),
            |place| match place {
                CachePlace::Outer => "single, at the OD",
                CachePlace::Middle => "single, at the MD",
                CachePlace::Inner => "single, at the ID",
                CachePlace::Multiple => "multiple",
            },
        ),
        measured("Cache size", f.cache_bytes.map(cache)),
        measured("Cache map size", f.map_entries.map(map)),
        measured(
            "Single writes until cleaning",
            f.writes_until_full.map(|writes| writes.to_string()),
        ),
        decided("Cache is a circular log", f.circular_log.as_ref(), |log| {
            if *log { "yes" } else { "not seen" }
        }),
        measured("Band size", bands()),
        decided(
            "Block mapping",
            f.mapping.as_ref(),
            |mapping| match mapping {
                Mapping::Static => "static",
                Mapping::Dynamic => "dynamic",
            },
        ),
        decided(
            "Cleaning type",
            f.cleaning.as_ref(),
            |cleaning| match cleaning {
                CleaningType::Lazy => "lazy",
                CleaningType::Aggressive => "aggressive",
            },
        ),
        decided("Cleaning algorithm", f.fifo.as_ref(), |fifo| {
            if *fifo { "FIFO" } else { "not FIFO" }
        }),
        measured(
            if f.band_cleaning_many_ms.is_some() {
                "Cleaning time, 1–512 new blocks"
            } else if is_lazy {
                "Wait of a write that has a band cleaned"
            } else {
                "Cleaning time, one new block"
            },
            f.band_cleaning_ms
                .map(|ms| seconds(ms, f.band_cleaning_many_ms)),
        ),
        measured(
            "Zone structure",
            f.zone_bytes.map(|(least, most)| stretch(least, most)),
        ),
        or_not(
            decided_as("Surfaces", f.surfaces.as_ref(), |count| {
                format!("{count} ({} platters)", count.div_ceil(2))
            }),
            structure.then_some(("Surfaces", "cannot be told")),
        ),
        or_not(
            decided(
                "Shingling direction",
                f.shingling.as_ref(),
                |way| match way {
                    Shingling::Inwards => "towards the ID",
                    Shingling::Outwards => "towards the OD",
                    Shingling::TowardsMiddle => "towards the MD",
                    Shingling::AwayFromMiddle => "away from the MD",
                },
            ),
            (structure && managed).then_some(("Shingling direction", "cannot be told")),
        ),
        decided(
            "Strokes at the MD",
            f.serpentine_middle.as_ref(),
            |serpentine| {
                if *serpentine {
                    "to and fro"
                } else {
                    "all one way"
                }
            },
        ),
        measured(
            "Sequential reads",
            f.sequential_bytes_per_second
                .map(|(outer, inner)| format!("{:.0}–{:.0} MB/s", inner / 1e6, outer / 1e6)),
        ),
        or_not(
            decided("Torn writes", f.torn_writes.as_ref(), |torn| {
                if *torn {
                    "yes, by a power cut while streaming"
                } else {
                    "not seen"
                }
            }),
            (structure && managed).then_some((
                "Torn writes",
                "not tested: that takes a switch for its power",
            )),
        ),
        or_not(
            measured(
                "Sequential writes, streamed",
                f.stream_bytes
                    .map(|bytes| format!("from {:.0} MiB on", bytes as f64 / MIB)),
            ),
            // Where bands move, it cannot be told by where their blocks are.
            (structure && fixed).then_some(("Sequential writes, streamed", "none of up to 64 MiB")),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Advice in sentences for a drive of `blocks` blocks.
pub fn advice(f: &Findings, blocks: u64) -> Vec<String> {
    let means = meaning(f, blocks);
    match f.drive_type.map(|kind| kind.value) {
        Some(DriveType::DriveManaged) => managed(f, &means),
        Some(DriveType::Conventional) => {
            let mut all = vec!["It writes where it is told: nothing to watch out for.".into()];
            all.extend(means.rebuild_hours.map(|hours| {
                format!("Writing all of it, as a RAID rebuild does, takes about {hours:.0} hours.")
            }));
            all
        }
        Some(DriveType::HostManaged) => {
            vec!["It takes writes in order only: run zonestore on it.".into()]
        }
        Some(DriveType::HostAware) => {
            vec!["It takes writes in any order, and is quick only if they are in order.".into()]
        }
        _ => Vec::new(),
    }
}

fn managed(f: &Findings, means: &Meaning) -> Vec<String> {
    let mut all = Vec::new();
    let rate = |rate: f64| {
        if rate < 10.0 {
            format!("{rate:.1}")
        } else {
            format!("{rate:.0}")
        }
    };
    if let (Some(burst), Some(quick)) = (means.burst_writes, means.burst_writes_per_second) {
        let large = f.burst_bytes().map(|bytes| bytes as f64 / GIB);
        let large = large.map(|gib| format!(", or {gib:.1} GiB of large ones"));
        let alone = means.burst_writes_one_at_a_time;
        let alone = alone.map(|writes| format!(" (one at a time {writes})"));
        all.push(format!(
            "A burst of up to {burst} small random writes, 31 at a time{}{}, goes to the cache, of small \
             ones {} a second; then the drive has to clean.",
            alone.unwrap_or_default(),
            large.unwrap_or_default(),
            rate(quick)
        ));
    }
    if let Some(sustained) = means.sustained_writes_per_second {
        let sustained = rate(sustained);
        all.push(match means.hours_of_cleaning {
            Some(hours) => format!(
                "Without a pause it takes as many again only after about {hours:.0} hours of cleaning, in \
                 which it takes a few a second: small random writes come to about {sustained} a second in \
                 the long run."
            ),
            None => format!(
                "Small random writes without a pause are sustained at about {sustained} a second."
            ),
        });
    }
    match (means.bands_an_idle_hour, f.middle_band()) {
        (Some(bands), Some(band)) => all.push(format!(
            "An hour without work cleans about {bands:.0} bands ({:.0} GiB of scattered writes' \
             neighbourhoods).",
            bands * band as f64 / GIB
        )),
        _ if f.cleaning.map(|c| c.value) == Some(CleaningType::Lazy) => {
            all.push(
                "Ten minutes of pauses did not make it clean: do not count on a pause.".into(),
            );
        }
        _ => {}
    }
    let hours = means
        .rebuild_hours
        .map(|hours| format!("about {hours:.0} hours"));
    match (f.stream_bytes, hours) {
        (Some(bytes), hours) => all.push(format!(
            "Sequential writes of {:.0} MiB or more go straight to their bands at full speed, so a RAID \
             rebuild does as well if nothing else writes{}.",
            bytes as f64 / MIB,
            hours.map(|hours| format!(", and takes {hours}")).unwrap_or_default()
        )),
        (None, Some(hours)) => all.push(format!(
            "Sequential writes go through the cache too: a RAID rebuild takes {hours}, most of it at the \
             cleaner's speed."
        )),
        (None, None) => {}
    }
    let tears = |verb| {
        format!(
            "A power cut in the middle of a sequential write {verb} leave older data beside it unreadable."
        )
    };
    match f.mapping {
        _ if f.torn_writes.is_some_and(|torn| torn.value) => all.push(tears("did")),
        Some(mapping) if mapping.value == Mapping::Static => {
            all.extend(f.stream_bytes.map(|_| tears("can")));
        }
        Some(mapping) if mapping.confidence >= SURE => {
            all.push(
                "A band is written anew somewhere else, so a power cut does not tear it.".into(),
            );
        }
        _ => {}
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_torn_outweighs_the_mapping() {
        let said = |mapping, torn: Option<bool>, stream_bytes| {
            let findings = Findings {
                drive_type: Some(Finding::new(DriveType::DriveManaged, 1.0)),
                mapping: Some(mapping),
                torn_writes: torn.map(|torn| Finding::new(torn, 1.0)),
                stream_bytes,
                ..Findings::default()
            };
            let all = advice(&findings, 1 << 30);
            let mut said = all.iter().filter(|line| line.contains("power cut"));
            let verb = |line: &String| {
                ["did leave", "can leave", "does not tear"]
                    .into_iter()
                    .find(|verb| line.contains(verb))
            };
            let first = said.next().and_then(verb);
            assert_eq!(said.next(), None);
            first
        };
        let fixed = Finding::new(Mapping::Static, 1.0);
        let moves = |confidence| Finding::new(Mapping::Dynamic, confidence);
        let stream = Some(8 << 20);
        for (mapping, torn, stream_bytes, verb) in [
            (moves(1.0), Some(true), stream, Some("did leave")),
            (fixed, Some(true), None, Some("did leave")),
            (fixed, Some(true), stream, Some("did leave")),
            (fixed, Some(false), stream, Some("can leave")),
            (fixed, None, None, None),
            (moves(1.0), None, None, Some("does not tear")),
            (moves(1.0), Some(false), stream, Some("does not tear")),
            (moves(0.7), None, None, None),
        ] {
            assert_eq!(
                said(mapping, torn, stream_bytes),
                verb,
                "{mapping:?} {torn:?}"
            );
        }
    }

    #[test]
    fn the_printed_drive_reads_as_printed() {
        let findings = Findings {
            drive_type: Some(Finding::new(DriveType::DriveManaged, 1.0)),
            cache_place: Some(Finding::new(CachePlace::Outer, 1.0)),
            cache_bytes: Some(Size::exact((16.78 * GIB) as u64)),
            map_entries: Some(Size::exact(182_231)),
            writes_until_full: Some(22_800),
            has_journal: true,
            burst_writes_per_second: Some(1_160.0),
            band_bytes: [36, 27, 17].map(|mib| Some(mib << 20)),
            band_cleaning_ms: Some(600.0),
            band_cleaning_many_ms: Some(1_600.0),
            cleaning: Some(Finding::new(CleaningType::Aggressive, 1.0)),
            ..Findings::default()
        };
        let rows = rows(&findings);
        let value = |property| {
            let row = rows.iter().find(|row| row.property == property);
            row.map(|row| row.value.as_str()).unwrap()
        };
        assert_eq!(
            value("Cache size"),
            "16.78 GiB until cleaning begins (20 GiB if that is 84 % of it)"
        );
        assert_eq!(
            value("Cache map size"),
            "182231 writes until cleaning begins (200,000 entries if that is 91 % of it)"
        );
        assert_eq!(value("Band size"), "17–36 MiB");
        assert_eq!(value("Cleaning time, 1–512 new blocks"), "0.6–1.6 s");
        // What of a map without a journal is full when it cleans, nobody knows, nor how long one block takes of a lazy
        // drive.
        let other = Findings {
            map_entries: Some(Size::exact(20_000)),
            writes_until_full: Some(20_000),
            has_journal: false,
            cleaning: Some(Finding::new(CleaningType::Lazy, 1.0)),
            band_cleaning_many_ms: None,
            ..findings.clone()
        };
        let rows = super::rows(&other);
        let has = |property, value| {
            let same = |row: &Row| row.property == property && row.value == value;
            rows.iter().any(same)
        };
        assert!(has("Cache map size", "20000 writes"), "{rows:?}");
        assert!(has("Cache size", "16.78 GiB"), "{rows:?}");
        assert!(
            has("Wait of a write that has a band cleaned", "0.6 s"),
            "{rows:?}"
        );
        let unknown = Findings {
            cache_bytes: Some(Size::at_least(9 << 30, Bound::Map)),
            map_entries: Some(Size::at_least(136_400, Bound::Journal)),
            writes_until_full: None,
            ..findings.clone()
        };
        let values: Vec<String> = (super::rows(&unknown).into_iter())
            .filter(|row| row.property.starts_with("Cache") && row.property.ends_with("size"))
            .map(|row| row.value)
            .collect();
        assert_eq!(
            values,
            [
                "at least 9.00 GiB: the map was full first",
                "at least 136400 writes: the journal was full first"
            ]
        );
        let advice = advice(&findings, 5_000_000_000_000 / 4096);
        assert!(
            advice
                .iter()
                .any(|line| line.contains("sustained at about 3.4 a second")),
            "{advice:?}"
        );
    }
}
