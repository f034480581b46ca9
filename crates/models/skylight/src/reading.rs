//! Findings that need no writes: rotation, bandwidth by position, and seek times. Reads cannot tell whether a disk is
//! shingled.

use crate::finding::{DriveType, Finding};
use crate::place::turn;
use crate::report::Row;
use crate::statistics::{median, quantile};
use crate::target::{Target, TargetError, Told, Zoned, gather, gather_into, millis};
use crate::test::t01_still::still;
use crate::track::{Track, track};
use drive_model::Random;
use drive_model::{BLOCK_BYTES, Lba, Request};
use serde::Serialize;

/// Findings by reading. A missing one does not apply, or could not be determined.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Readings {
    /// Characteristics that the drive reports.
    pub told: Told,
    /// Milliseconds of a turn of the platters.
    pub turn_ms: Option<f64>,
    /// Flash, if the drive is. Reads of a disk tell only that it rotates.
    pub drive_type: Option<Finding<DriveType>>,
    /// Milliseconds of random reads of 4 KiB across the drive: the median and the 90th percentile.
    pub random_read_ms: Option<(f64, f64)>,
    /// Offset in bytes, and bytes a second of sequential reads there.
    pub rates: Vec<(u64, f64)>,
    /// Distance between two reads as a part of the drive, and milliseconds of the fastest such read.
    pub seeks_ms: Vec<(f64, f64)>,
    /// Tracks at the start, in the middle and at the end.
    pub tracks: Vec<Track>,
    /// What could not be determined, and why.
    pub unknown: Vec<String>,
    /// Seconds of the drive's time for all reads.
    pub seconds: f64,
}

/// Examines a drive by reading, and tells `progress` the next step. If the target stops answering, the findings up to
/// then are kept.
pub fn read(
    target: &mut dyn Target,
    seed: u64,
    progress: &mut dyn FnMut(&str),
) -> (Readings, Result<(), TargetError>) {
    let mut found = Readings {
        told: target.told(),
        ..Readings::default()
    };
    let start = target.now();
    let result = read_all(target, &mut Random::new(seed), progress, &mut found);
    found.seconds = target.now().since(start).seconds();
    if found.drive_type.is_none() {
        let writes =
            "whether it is shingled, and what its cache, bands and cleaning are: that takes writes";
        found.unknown.push(writes.into());
    }
    (found, result)
}

fn read_all(
    target: &mut dyn Target,
    random: &mut Random,
    progress: &mut dyn FnMut(&str),
    found: &mut Readings,
) -> Result<(), TargetError> {
    progress("size");
    target.check_size(false)?;
    target.set_look_ahead(false);
    progress("rotation");
    found.turn_ms = turn(target, random)?;
    progress("random reads");
    let blocks = target.blocks();
    let mut reads = |from: u64, room: u64| {
        let all: Vec<Request> = (0..128)
            .map(|_| Request::read(Lba(from + random.below(room)), 1))
            .collect();
        let mut answers = Vec::new();
        let result = gather_into(&mut answers, target, 1, all);
        (millis(&answers), result)
    };
    let (far, result) = reads(0, blocks);
    if far.len() >= FEWEST {
        found.random_read_ms = Some((median(&far), quantile(&far, 0.9)));
    }
    result?;
    let (near, result) = reads(blocks / 2, (1 << 12).min(blocks / 4));
    result?;
    if found.turn_ms.is_none() {
        let disk = found.told.rotational == Some(true) || found.told.zoned.is_some();
        match still(&far, &near) {
            Ok(_) if disk => found.unknown.push(
                "flash or disk: reads cost nothing, but it says that it turns or has zones; blocks \
                 that nobody has written may be answered without a look at the medium"
                    .into(),
            ),
            // It is unknown whether the blocks that were read had ever been written.
            Ok((kind, _)) => found.drive_type = Some(Finding::new(kind.value, 0.5)),
            Err(why) => found.unknown.push(format!("flash or disk: {why}")),
        }
    }
    progress("bandwidth");
    target.set_look_ahead(true);
    bandwidth(target, &mut found.rates)?;
    if let Some(turn_ms) = found.turn_ms {
        progress("seeks");
        target.set_look_ahead(false);
        seeks(target, random, &mut found.seeks_ms)?;
        progress("tracks");
        for part in [
            0,
            found.rates.len() / 2,
            found.rates.len().saturating_sub(2),
        ] {
            let Some((at, rate)) = found.rates.get(part) else {
                continue;
            };
            let about = rate * turn_ms / 1e3 / BLOCK_BYTES as f64;
            let first = Lba(at / BLOCK_BYTES);
            found
                .tracks
                .extend(track(target, turn_ms, first, about as u64)?);
        }
        if found.tracks.is_empty() {
            let why = "tracks: no ends are seen that are evenly apart";
            found.unknown.push(why.into());
        }
    }
    Ok(())
}

/// Least number of reads for the latency of one.
const FEWEST: usize = 8;
/// Number of positions at which the bandwidth is measured.
const PLACES: u64 = 64;
/// Requests of 1 MiB at each position; the first is not counted, because it includes a seek.
const REQUESTS: u64 = 9;
const MIB_BLOCKS: u64 = 256;

fn bandwidth(target: &mut dyn Target, rates: &mut Vec<(u64, f64)>) -> Result<(), TargetError> {
    let length = REQUESTS * MIB_BLOCKS;
    let room = target.blocks().saturating_sub(length);
    for place in 0..PLACES {
        let first = room / (PLACES - 1) * place;
        let requests =
            (0..REQUESTS).map(|n| Request::read(Lba(first + n * MIB_BLOCKS), MIB_BLOCKS as u32));
        let answers = gather(target, 1, requests)?;
        if let [begin, .., end] = &answers[..] {
            let bytes = (REQUESTS - 1) * MIB_BLOCKS * BLOCK_BYTES;
            let seconds = end.at.since(begin.at).seconds().max(1e-9);
            rates.push((first * BLOCK_BYTES, bytes as f64 / seconds));
        }
    }
    Ok(())
}

/// Seek distances as parts of the drive.
const DISTANCES: [f64; 9] = [
    1e-5,
    1e-4,
    1e-3,
    0.01,
    0.05,
    0.1,
    1.0 / 3.0,
    2.0 / 3.0,
    0.98,
];
/// Reads for each distance: the fastest of them waits for a twentieth of a turn or less.
const READS: usize = 32;

fn seeks(
    target: &mut dyn Target,
    random: &mut Random,
    seeks: &mut Vec<(f64, f64)>,
) -> Result<(), TargetError> {
    let blocks = target.blocks();
    for distance in DISTANCES {
        let far = ((blocks as f64 * distance) as u64).max(1);
        let room = (blocks - far).max(1);
        let pairs: Vec<Request> = (0..READS)
            .flat_map(|_| {
                let first = random.below(room);
                [first, first + far].map(|lba| Request::read(Lba(lba), 1))
            })
            .collect();
        let answers = gather(target, 1, pairs)?;
        let second: Vec<f64> = (answers.chunks_exact(2))
            .map(|pair| pair[1].latency.millis())
            .collect();
        seeks.push((distance, quantile(&second, 0.0)));
    }
    Ok(())
}

/// Rows of the characteristics that a drive reports.
pub fn told_rows(told: &Told) -> Vec<Row> {
    let row = |property, value: Option<String>| value.map(|value| Row::known(property, value));
    let zones = told.zoned.map(|zoned| match zoned {
        Zoned::HostAware => "host-aware".to_owned(),
        Zoned::HostManaged => "host-managed".to_owned(),
        Zoned::DriveManaged => "drive-managed".to_owned(),
    });
    let turns = match (told.rpm, told.rotational) {
        (Some(rpm), _) => Some(format!("{rpm} rpm")),
        (None, Some(true)) => Some("turns".to_owned()),
        (None, Some(false)) => Some("does not turn".to_owned()),
        (None, None) => None,
    };
    let rows = [
        row("It says of its zones", zones),
        row("It says of its platters", turns),
    ];
    rows.into_iter().flatten().collect()
}

/// Rows of the report.
pub fn rows(found: &Readings) -> Vec<Row> {
    let row = |property, value: String| Row {
        property,
        value,
        confidence: None,
    };
    let mut rows = told_rows(&found.told);
    if let Some(turn_ms) = found.turn_ms {
        rows.push(row("Platters turn", format!("{:.0} rpm", 60e3 / turn_ms)));
    }
    if let Some(kind) = found.drive_type {
        rows.push(Row {
            property: "Drive type",
            value: "flash, a memory, or a disk that nobody has written to".into(),
            confidence: Some(kind.confidence),
        });
    }
    if let Some((middle, most)) = found.random_read_ms {
        let value = format!("{middle:.2} ms, nine in ten below {most:.2} ms");
        rows.push(row("Random read of 4 KiB", value));
    }
    if let (Some((_, first)), Some((at, last))) = (found.rates.first(), found.rates.last()) {
        let place = if found.rates.len() as u64 == PLACES {
            "the end".into()
        } else {
            format!("{:.1} GB", *at as f64 / 1e9)
        };
        let (first, last) = (first / 1e6, last / 1e6);
        let value = format!("{first:.0} MB/s at the start, {last:.0} MB/s at {place}");
        rows.push(row("Sequential read", value));
    }
    let end = found.rates.len().saturating_sub(2);
    for (property, part) in [("Track at the start", 0), ("Track at the end", end)] {
        // None where it was not found, and the same only once.
        let at = found.rates.get(part).map(|(at, _)| at / BLOCK_BYTES);
        let at = at.filter(|_| part > 0 || property == "Track at the start");
        let is_there = |track: &&Track| Some(track.at / BLOCK_BYTES) == at;
        let track = found.tracks.iter().find(is_there);
        let value = |track: &Track| {
            let bytes = track.bytes as f64 / 1e6;
            format!("{bytes:.2} MB, skew {:.1} ms", track.skew_ms)
        };
        rows.extend(track.map(|track| row(property, value(track))));
    }
    let ways = [(0.0, "near by"), (0.33, "over a third"), (0.98, "over all")];
    let seeks = ways.iter().filter_map(|(part, way)| {
        let mut far = found.seeks_ms.iter();
        let (_, millis) = far.find(|(distance, _)| distance >= part)?;
        Some(format!("{millis:.1} ms {way}"))
    });
    let seeks: Vec<String> = seeks.collect();
    if !seeks.is_empty() {
        rows.push(row("Quickest read after a seek", seeks.join(", ")));
    }
    rows
}
