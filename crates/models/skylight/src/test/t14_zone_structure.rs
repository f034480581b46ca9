//! Test 14 (section 2.4.12): sequential reads. How fast they are says how long tracks are, so where
//! recording zones lie; no two surfaces are equally dense, so the rate changes with the surface, down
//! through all of them and up again. Where a drive stays on a surface for thousands of tracks, how far
//! the arm has to go from the beginning and from the end of such a stroke says in which direction it
//! runs; the paper looked through a window for that.

use crate::finding::{Finding, Shingling};
use crate::statistics::{median, quantile};
use crate::target::{Target, TargetError, gather, serve};
use drive_model::Random;
use drive_model::{Lba, Request};
use std::ops::ControlFlow;

use crate::strokes::{ENOUGH, Stroke, in_pieces, narrow, plateaus, surfaces};

/// Measurements of the test.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Observed {
    /// Milliseconds of a turn.
    pub turn_ms: f64,
    /// Milliseconds of each read of [`FINE`] blocks, from the first block of the drive on.
    pub fine: Vec<f64>,
    /// Milliseconds of each read of [`COARSE`] blocks from the first block on, if the drive stays on a surface for
    /// longer than `fine` lasts.
    pub begin: Vec<f64>,
    /// First block near the end of the drive, and milliseconds of each read of [`COARSE`] blocks from there.
    pub end: (u64, Vec<f64>),
    /// Bytes a second by place, across the drive: [`SAMPLE`] reads of [`COARSE`] blocks at each.
    pub across: Vec<(Lba, f64)>,
    /// How long the ways to a place further in are from some strokes at the beginning of the drive; and
    /// those to a place further out, from some at its end.
    pub ways: Vec<Vec<Ways>>,
    /// The same to a place further in, from some strokes in a row at the middle diameter.
    pub middle: Vec<Ways>,
}

/// Milliseconds of seeks from a stroke to one place.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Ways {
    /// Seeks from the start of the stroke.
    pub beginnings: Vec<f64>,
    /// Seeks from the end of the stroke.
    pub ends: Vec<f64>,
}

/// Blocks of a read that shows every change of the track: 64 KiB.
pub const FINE: u64 = 16;
/// Blocks of a read otherwise, as in the paper: 1 MiB.
pub const COARSE: u64 = 256;
/// Reads in each place of the whole drive.
pub const SAMPLE: usize = 8;
/// Places of the whole drive.
const PLACES: u64 = 512;
/// Reads of the fine kind: 1 GiB, and 16 GiB where strokes are short.
const FINE_READS: (usize, usize) = (1 << 14, 1 << 18);
/// Reads of the coarse kind: 64 GiB at a time, 1,408 GiB at most: twelve surfaces of 40 GiB, twice and a
/// half.
const COARSE_READS: (u64, u64) = (1 << 16, 22 << 16);
/// Where so many of them, 512 GiB, show no whole stroke or strokes in pieces, more would not help.
const WITHOUT_STROKES: usize = 8 << 16;
/// At the end and in the middle: 256 GiB at most.
const ELSEWHERE_READS: u64 = 4 << 16;
/// Reads for each of the ways, again and again where they do not tell it, and strokes that are looked at:
/// at either end, and in the middle.
const WAYS: u64 = 768;
const ROUNDS: usize = 4;
const STROKES: usize = 4;
const MIDDLE_STROKES: usize = 6;

/// Reads in front of those that count, for the way there is no part of them.
const RUN_UP: u64 = 4;

/// Milliseconds between the ends of sequential reads of `step` blocks, with another always waiting.
fn sequential(
    target: &mut dyn Target,
    first: u64,
    step: u64,
    count: u64,
) -> Result<Vec<f64>, TargetError> {
    let last = target.blocks().saturating_sub(first) / step;
    let begin = first - RUN_UP.min(first / step) * step;
    let count = count.min(last) + (first - begin) / step;
    let mut reads = (0..count).map(|n| Request::read(Lba(begin + n * step), step as u32));
    let mut all = Vec::with_capacity(count as usize);
    let mut before = target.now();
    serve(target, 2, &mut reads, &mut |answer| {
        if answer.request.lba.0 >= first {
            all.push(answer.at.since(before).millis());
        }
        before = answer.at;
        ControlFlow::Continue(())
    })?;
    Ok(all)
}

/// Milliseconds of reads around `to` that come from the `width` blocks behind `from`.
fn ways(
    target: &mut dyn Target,
    random: &mut Random,
    (from, width): (u64, u64),
    to: u64,
) -> Result<Vec<f64>, TargetError> {
    let pairs = (0..WAYS).flat_map(|_| {
        [
            Request::read(Lba(from + random.below(width)), 1),
            Request::read(Lba(to + random.below(COARSE)), 1),
        ]
    });
    let answers = gather(target, 1, pairs)?;
    let second = answers.chunks_exact(2).map(|pair| pair[1].latency.millis());
    Ok(second.collect())
}

/// Bytes a second of sequential reads by place, across the drive.
///
/// # Errors
/// The target does not answer.
pub fn across(target: &mut dyn Target) -> Result<Vec<(Lba, f64)>, TargetError> {
    let blocks = target.blocks();
    let mut all = Vec::new();
    for n in 0..PLACES {
        let room = (blocks - COARSE * (SAMPLE as u64 + RUN_UP)) / (PLACES - 1);
        let first = COARSE * RUN_UP + room * n;
        let times = sequential(target, first, COARSE, SAMPLE as u64)?;
        let seconds = times.iter().sum::<f64>() / 1e3;
        let bytes = (COARSE * times.len() as u64 * drive_model::BLOCK_BYTES) as f64;
        all.push((Lba(first), bytes / seconds.max(1e-9)));
    }
    Ok(all)
}

/// Bytes a second at the start and at the end of the drive.
pub fn rate(across: &[(Lba, f64)]) -> (f64, f64) {
    let rates: Vec<f64> = across.iter().map(|(_, rate)| *rate).collect();
    let edge = (rates.len() / 50).max(1).min(rates.len());
    (median(&rates[..edge]), median(&rates[rates.len() - edge..]))
}

/// Runs the workload, with an empty cache.
///
/// # Errors
/// The target does not answer.
pub fn workload(
    target: &mut dyn Target,
    turn_ms: f64,
    random: &mut Random,
) -> Result<Observed, TargetError> {
    let blocks = target.blocks();
    let mut seen = Observed {
        turn_ms,
        ..Observed::default()
    };
    seen.across = across(target)?;
    let fine = FINE * RUN_UP;
    seen.fine = sequential(target, fine, FINE, FINE_READS.0 as u64)?;
    if narrow(&seen.fine, turn_ms).len() >= 3 {
        let more = (FINE_READS.1 - FINE_READS.0) as u64;
        let from = fine + seen.fine.len() as u64 * FINE;
        let rest = sequential(target, from, FINE, more)?;
        seen.fine.extend(rest);
        return Ok(seen);
    }
    while (seen.begin.len() as u64) < COARSE_READS.1.min(blocks / 2 / COARSE) {
        let from = (RUN_UP + seen.begin.len() as u64) * COARSE;
        seen.begin
            .extend(sequential(target, from, COARSE, COARSE_READS.0)?);
        let strokes = plateaus(&seen.begin, turn_ms);
        let none = strokes.len() < 3 || in_pieces(&strokes);
        let hopeless = none && seen.begin.len() >= WITHOUT_STROKES;
        if hopeless || strokes.len() > ENOUGH || surfaces(&strokes, false).is_some() {
            break;
        }
    }
    let strokes = plateaus(&seen.begin, turn_ms);
    let Some(longest) = strokes.iter().map(|stroke| stroke.reads).max() else {
        return Ok(seen);
    };
    // From the end backwards, until there is one of each surface.
    let most = (5 * longest as u64).min(blocks / 4 / COARSE);
    let most = most.min(ELSEWHERE_READS);
    let each = surfaces(&strokes, false).map_or(usize::MAX, |count| count.value as usize + 3);
    seen.end.0 = blocks / COARSE * COARSE;
    let mut inner = Vec::new();
    while (seen.end.1.len() as u64) < most && inner.len() < each {
        let count = (longest as u64).min(most - seen.end.1.len() as u64);
        seen.end.0 -= count * COARSE;
        let mut times = sequential(target, seen.end.0, COARSE, count)?;
        times.append(&mut seen.end.1);
        seen.end.1 = times;
        inner = plateaus(&seen.end.1, turn_ms);
    }
    // Further in from the first strokes, further out from the last ones, by more than a recording zone,
    // within which strokes of higher addresses may lie further out.
    let far = blocks / 6;
    // Without surfaces, the arm has to go back to where a stroke begins: else these are no strokes.
    let back = strokes.iter().filter(|stroke| stroke.missed).count();
    if surfaces(&strokes, false).is_none() && back * 2 < strokes.len() {
        return Ok(seen);
    }
    for (strokes, first, inwards) in [
        (&strokes, RUN_UP * COARSE, true),
        (&inner, seen.end.0, false),
    ] {
        let whole = whole(strokes, STROKES);
        let Some(last) = whole.last() else { continue };
        let last = first + (last.first + last.reads) as u64 * COARSE;
        let to = if inwards {
            last + far
        } else {
            first.saturating_sub(far)
        };
        seen.ways
            .push(all_ways(target, random, (whole, first), to)?);
    }
    if direction(&seen.ways).is_some() {
        seen.middle = middle(
            target,
            turn_ms,
            random,
            (middle_block(&seen.across), longest),
        )?;
    }
    Ok(seen)
}

/// The ways from strokes behind `first`, none of them longer than `longest`, to a place further in.
fn middle(
    target: &mut dyn Target,
    turn_ms: f64,
    random: &mut Random,
    (first, longest): (u64, usize),
) -> Result<Vec<Ways>, TargetError> {
    let (first, far) = (first / COARSE * COARSE, target.blocks() / 6);
    let most = (2 + MIDDLE_STROKES as u64) * longest as u64;
    let most = most.min(far / COARSE).min(ELSEWHERE_READS);
    let (mut times, mut strokes) = (Vec::new(), Vec::new());
    while (times.len() as u64) < most && strokes.len() < MIDDLE_STROKES + 2 {
        let from = first + times.len() as u64 * COARSE;
        let count = (longest as u64).min(most - times.len() as u64);
        times.extend(sequential(target, from, COARSE, count)?);
        strokes = plateaus(&times, turn_ms);
    }
    let whole = whole(&strokes, MIDDLE_STROKES);
    let read = whole.last().map_or(0, |last| last.first + last.reads);
    let to = first + read as u64 * COARSE + far;
    let to = to.min(target.blocks() - COARSE);
    all_ways(target, random, (whole, first), to)
}

/// The first of the strokes that were not cut off.
fn whole(strokes: &[Stroke], most: usize) -> &[Stroke] {
    let inside = strokes.get(1..strokes.len().saturating_sub(1));
    let inside = inside.unwrap_or_default();
    &inside[..most.min(inside.len())]
}

/// The block at the middle diameter: as many tracks are in front of it as behind it, so reading the one
/// takes as long as the other.
fn middle_block(across: &[(Lba, f64)]) -> u64 {
    let all: f64 = across.iter().map(|(_, rate)| rate.recip()).sum();
    let mut half = all / 2.0;
    let behind = across.iter().find(|(_, rate)| {
        half -= rate.recip();
        half <= 0.0
    });
    behind.map_or(0, |(lba, _)| lba.0)
}

/// The ways from strokes, the first of whose reads began at `first`, to one place.
fn all_ways(
    target: &mut dyn Target,
    random: &mut Random,
    (strokes, first): (&[Stroke], u64),
    to: u64,
) -> Result<Vec<Ways>, TargetError> {
    let mut all = vec![Ways::default(); strokes.len()];
    for _ in 0..ROUNDS {
        for (stroke, seen) in strokes.iter().zip(&mut all) {
            let width = (stroke.reads as u64 / 20).max(1) * COARSE;
            let begin = first + stroke.first as u64 * COARSE + width;
            let end = begin + stroke.reads as u64 * COARSE - 3 * width;
            let beginnings = ways(target, random, (begin, width), to)?;
            seen.beginnings.extend(beginnings);
            seen.ends.extend(ways(target, random, (end, width), to)?);
        }
        if all.iter().all(|ways| differ(ways).abs() > SAME_WAY_MS) {
            break;
        }
    }
    Ok(all)
}

/// Draws the conclusion from the measurements.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Found {
    /// Number of surfaces, if they can be distinguished.
    pub surfaces: Option<Finding<u32>>,
    /// Bytes of the shortest and of the longest stroke.
    pub stroke_bytes: Option<(u64, u64)>,
    /// Bytes a second at the start and at the end of the drive.
    pub rate: (f64, f64),
    /// Direction of the strokes, if they are long enough to tell.
    pub shingling: Option<Finding<Shingling>>,
    /// Whether strokes alternate in direction at the middle diameter, if they have a direction elsewhere.
    pub serpentine_middle: Option<Finding<bool>>,
}

/// Ways that differ by less, in milliseconds, are the same.
const SAME_WAY_MS: f64 = 0.1;

/// By how many milliseconds the ways from the end of a stroke are longer than those from its beginning.
fn differ(ways: &Ways) -> f64 {
    // Nearly the shortest of many, which waited for hardly any turn: the more there are, the less.
    let seek = |all: &[f64]| quantile(all, 8.0 / all.len() as f64);
    seek(&ways.ends) - seek(&ways.beginnings)
}

/// Whether strokes in a row run to and fro. Once among them two may run the same way, where the last
/// surface is also the next group's first.
fn serpentine(strokes: &[Ways]) -> Option<Finding<bool>> {
    let all: Vec<f64> = strokes.iter().map(differ).collect();
    let least = all.iter().map(|d| d.abs()).fold(f64::INFINITY, f64::min);
    if all.len() < MIDDLE_STROKES || least <= SAME_WAY_MS {
        return None;
    }
    let turns = all.windows(2).filter(|pair| pair[0] * pair[1] < 0.0);
    let sure = (least / SAME_WAY_MS / 4.0 + 0.5).min(1.0);
    match turns.count() {
        0 => Some(Finding::new(false, sure)),
        turns if turns + 2 >= all.len() => Some(Finding::new(true, sure)),
        _ => None,
    }
}

/// By how many milliseconds the ways from ends are longer than those from beginnings: the least that
/// all strokes have in common. None if they differ in direction, or too little.
fn longer(strokes: &[Ways]) -> Option<f64> {
    let all: Vec<f64> = strokes.iter().map(differ).collect();
    let first = *all.first()?;
    let same = |d: &f64| d.signum() == first.signum() && d.abs() > SAME_WAY_MS;
    let least = all.iter().map(|d| d.abs()).fold(f64::INFINITY, f64::min);
    (all.len() >= 3 && all.iter().all(same)).then_some(least * first.signum())
}

/// In which direction strokes run, by their ways at the beginning of the drive and at its end.
fn direction(ways: &[Vec<Ways>]) -> Option<Finding<Shingling>> {
    let ways: Vec<Option<f64>> = ways.iter().map(|all| longer(all)).collect();
    match ways.as_slice() {
        // The end of a stroke is further in where the way in from it is shorter; at the end of the
        // drive, where the way out is longer.
        [Some(begin), Some(end)] => {
            let way = match (*begin < 0.0, *end > 0.0) {
                (true, true) => Shingling::Inwards,
                (true, false) => Shingling::TowardsMiddle,
                (false, true) => Shingling::AwayFromMiddle,
                (false, false) => Shingling::Outwards,
            };
            let sure = begin.abs().min(end.abs()) / SAME_WAY_MS / 4.0 + 0.5;
            Some(Finding::new(way, sure.min(1.0)))
        }
        _ => None,
    }
}

/// Strokes whose lengths differ by more are pieces of some and several others: a count of them is one of nothing.
const MOST_UNLIKE: u64 = 20;

/// Draws the conclusion from the measurements.
pub fn infer(observed: &Observed) -> Found {
    let rate = rate(&observed.across);
    let bytes = |stroke: &Stroke, step: u64| stroke.reads as u64 * step * drive_model::BLOCK_BYTES;
    if observed.begin.is_empty() {
        let strokes = narrow(&observed.fine, observed.turn_ms);
        let whole = whole(&strokes, usize::MAX).iter();
        let lengths = whole.map(|stroke| bytes(stroke, FINE));
        let lengths: Vec<u64> = lengths.collect();
        return Found {
            surfaces: surfaces(&strokes, true),
            stroke_bytes: lengths
                .iter()
                .min()
                .copied()
                .zip(lengths.iter().max().copied()),
            rate,
            shingling: None,
            serpentine_middle: None,
        };
    }
    let strokes = plateaus(&observed.begin, observed.turn_ms);
    let inner = plateaus(&observed.end.1, observed.turn_ms);
    let lengths: Vec<u64> = [&strokes, &inner]
        .into_iter()
        .flat_map(|all| whole(all, usize::MAX))
        .map(|stroke| bytes(stroke, COARSE))
        .collect();
    let shingling = direction(&observed.ways);
    let shortest = lengths.iter().min().copied().unwrap_or_default();
    let longest = lengths.iter().max().copied().unwrap_or_default();
    let surfaces = surfaces(&strokes, false).filter(|_| longest <= MOST_UNLIKE * shortest);
    // Where neither the rate nor a missed turn tells surfaces apart, these are no strokes.
    let seen = surfaces.is_some() || shingling.is_some();
    let extent = lengths
        .iter()
        .min()
        .copied()
        .zip(lengths.iter().max().copied());
    Found {
        surfaces,
        stroke_bytes: extent.filter(|_| seen),
        rate,
        shingling,
        serpentine_middle: serpentine(&observed.middle).filter(|_| shingling.is_some()),
    }
}
