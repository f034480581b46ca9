//! What was found, in the words of the main document's table 2.3, and what it means for whoever has
//! bought the drive.

use crate::finding::{
    CachePlace, CacheType, CleaningType, DriveType, Finding, Findings, Mapping, Shingling,
};
use drive_model::BLOCK_BYTES;

/// A property of the drive, what it is, and how sure that is, if it was a matter of deciding.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// As table 2.3 calls it.
    pub property: &'static str,
    /// What was found.
    pub value: String,
    /// 0 to 1.
    pub confidence: Option<f64>,
}

const MIB: f64 = 1048576.0;
const GIB: f64 = 1024.0 * MIB;

/// A drive that writes journal entries and has a bounded map begins to clean before map and cache are
/// full. The main document assumes so and takes 200,000 entries for 182,231 (table 2.2) and 20 GiB for
/// 16.78.
const MAP_LOW_WATERMARK: f64 = 0.911;
const CACHE_LOW_WATERMARK: f64 = 0.84;

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

/// A time, or from one to the other if that can be seen.
fn seconds(least_ms: f64, most_ms: Option<f64>) -> String {
    let tenths = |ms: f64| format!("{:.1}", ms / 1e3);
    let least = tenths(least_ms);
    match most_ms.map(tenths) {
        Some(most) if most != least => format!("{least}–{most} s"),
        _ => format!("{least} s"),
    }
}

fn measured(property: &'static str, value: Option<String>) -> Option<Row> {
    value.map(|value| Row {
        property,
        value,
        confidence: None,
    })
}

/// The rows of table 2.3 that are known.
pub fn rows(f: &Findings) -> Vec<Row> {
    let journals = f.writes_until_full.is_some();
    let managed = f.drive_type.map(|kind| kind.value) == Some(DriveType::DriveManaged);
    let structure = f.sequential_bytes_per_second.is_some();
    let gib = |bytes: u64, watermark: f64| {
        let found = bytes as f64 / GIB;
        if journals {
            let all = found / watermark;
            format!("{all:.0} GiB ({found:.2} GiB until cleaning begins)")
        } else {
            format!("{found:.2} GiB")
        }
    };
    let bands = || {
        let (least, most) = (f.band_bytes.iter().min()?, f.band_bytes.iter().max()?);
        let mib = |bytes: u64| (bytes as f64 / MIB).round();
        Some(if mib(*least) == mib(*most) {
            format!("{} MiB", mib(*least))
        } else {
            format!("{}–{} MiB", mib(*least), mib(*most))
        })
    };
    let map = |entries: u64| {
        if !journals {
            return format!("{entries} writes");
        }
        let all = entries as f64 / MAP_LOW_WATERMARK / 1e3;
        format!("{all:.0},000 ({entries} writes until cleaning begins)")
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
        measured(
            "Cache size",
            f.cache_bytes.map(|bytes| gib(bytes, CACHE_LOW_WATERMARK)),
        ),
        measured("Cache map size", f.map_entries.map(map)),
        measured(
            "Small writes until cleaning, one at a time",
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
                "Cleaning time of a band with 1 to 512 new blocks"
            } else {
                "Cleaning time of a band with one new block"
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
        measured(
            "Sequential write that is streamed",
            f.stream_bytes
                .map(|bytes| format!("from {:.0} MiB on", bytes as f64 / MIB)),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What it means, in sentences. `blocks` is the drive's size.
pub fn advice(f: &Findings, blocks: u64) -> Vec<String> {
    let kind = f.drive_type.map(|kind| kind.value);
    if kind != Some(DriveType::DriveManaged) {
        return match kind {
            Some(DriveType::Conventional) => {
                let mut all = vec!["It writes where it is told: nothing to watch out for.".into()];
                all.extend(whole_hours(f, blocks).map(|hours| {
                    format!(
                        "Writing all of it, as a RAID rebuild does, takes about {hours:.0} hours."
                    )
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
        };
    }
    let mut all = Vec::new();
    let burst = f
        .map_entries
        .or(f.cache_bytes.map(|bytes| bytes / BLOCK_BYTES));
    if let Some(burst) = burst {
        let bytes = f.cache_bytes.unwrap_or(0) as f64 / GIB;
        all.push(format!(
            "A burst of up to {burst} small random writes, or {bytes:.1} GiB of large ones, goes at \
             the cache's speed; then the drive has to clean."
        ));
    }
    if let (Some(ms), Some(burst), Some(band)) = (
        f.band_cleaning_ms,
        f.writes_until_full.or(burst),
        f.band_bytes.get(1),
    ) {
        // (1 + C/B) / t_clean, the closed form of a cache of C blocks over B bands.
        let bands = (blocks * BLOCK_BYTES) as f64 / *band as f64;
        let rate = (1.0 + burst as f64 / bands) / (ms / 1e3);
        all.push(format!(
            "Small random writes without a pause are sustained at about {rate:.1} a second."
        ));
        if f.cleaning.map(|c| c.value) == Some(CleaningType::Aggressive) {
            let hour = 3.6e6 / ms;
            all.push(format!(
                "An hour without work cleans about {hour:.0} bands ({:.0} GiB of scattered writes' \
                 neighbourhoods).",
                hour * *band as f64 / GIB
            ));
        } else {
            all.push("It never cleans by itself: a pause does not help.".into());
        }
    }
    match (f.stream_bytes, f.mapping.map(|m| m.value)) {
        (Some(bytes), Some(Mapping::Static)) => all.push(format!(
            "Sequential writes of {:.0} MiB or more go straight to their bands at full speed, so a RAID \
             rebuild does as well if nothing else writes{}. A power cut in the middle of one {} leave \
             older data beside it unreadable.",
            bytes as f64 / MIB,
            whole_hours(f, blocks)
                .map(|hours| format!(", and takes about {hours:.0} hours"))
                .unwrap_or_default(),
            if f.torn_writes.is_some_and(|torn| torn.value) { "did" } else { "can" }
        )),
        (None, Some(Mapping::Static)) => all.push(
            "Sequential writes go through the cache too: a RAID rebuild runs at the cleaner's speed \
             once that is full."
                .into(),
        ),
        (_, Some(Mapping::Dynamic)) => {
            all.push("A band is written anew somewhere else, so a power cut does not tear it.".into());
        }
        _ => {}
    }
    all
}

/// Hours for every block once at the rate of sequential reads, from the outermost tracks to the innermost.
fn whole_hours(f: &Findings, blocks: u64) -> Option<f64> {
    let (outer, inner) = f.sequential_bytes_per_second?;
    let mean = f64::midpoint(outer, inner);
    (mean > 0.0).then(|| (blocks * BLOCK_BYTES) as f64 / mean / 3600.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rebuild_takes_as_long_as_the_whole_drive_at_its_mean_rate() {
        let mut f = Findings {
            drive_type: Some(Finding::new(DriveType::Conventional, 1.0)),
            ..Findings::default()
        };
        let blocks = 3_600_000_000_000 / BLOCK_BYTES;
        assert_eq!(advice(&f, blocks).len(), 1, "the rate is not known");
        f.sequential_bytes_per_second = Some((150e6, 50e6));
        assert!(
            advice(&f, blocks)[1].ends_with("about 10 hours."),
            "{:?}",
            advice(&f, blocks)
        );
    }

    #[test]
    fn the_printed_drive_reads_as_printed() {
        let findings = Findings {
            drive_type: Some(Finding::new(DriveType::DriveManaged, 1.0)),
            cache_place: Some(Finding::new(CachePlace::Outer, 1.0)),
            cache_bytes: Some((16.78 * GIB) as u64),
            map_entries: Some(182_231),
            writes_until_full: Some(22_800),
            band_bytes: vec![36 << 20, 27 << 20, 17 << 20],
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
        assert!(value("Cache size").starts_with("20 GiB"));
        assert!(value("Cache map size").starts_with("200,000"));
        assert_eq!(value("Band size"), "17–36 MiB");
        assert_eq!(
            value("Cleaning time of a band with 1 to 512 new blocks"),
            "0.6–1.6 s"
        );
        let advice = advice(&findings, 5_000_000_000_000 / 4096);
        assert!(
            advice
                .iter()
                .any(|line| line.contains("sustained at about 1.9 a second")),
            "{advice:?}"
        );
    }
}
