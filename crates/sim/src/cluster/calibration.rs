//! Measures how long jobs take on a model of a drive, one job at a time.

use super::job::{Job, Owner, Work};
use super::model_disk::{BackEnd, ModelDisk};
use super::scenario::Impossible;
use super::served_disk::Calibrated;
use super::service::Service;
use super::translation::Translation;
use drive_model::layer::LayerShape;
use drive_model::{BLOCK_BYTES, Profile, Span, Time};
use serde::Deserialize;

/// Jobs of each kind that are measured.
const JOBS: u64 = 500;
/// Zones that data lies in, spread over the drive.
const ZONES: u64 = 128;

/// The sizes of the jobs.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Bytes of an object, or of a fragment.
    pub part: u64,
    /// Bytes that the cleaner moves at once.
    pub piece: u64,
    /// The share of a band that new writes replace, once the drive's allocator has gone round: 1 while the drive is
    /// filled for the first time.
    pub band_part: f64,
}

/// Times of jobs in milliseconds that were measured elsewhere, as in a real cluster whose drives had nothing else to
/// do. Each is as likely as the others.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// Times to read an object or fragment.
    pub read_ms: Vec<f64>,
    /// Times to write an object or fragment.
    pub write_ms: Vec<f64>,
    /// Times to move a piece; may be empty if nothing is cleaned.
    #[serde(default)]
    pub moved_ms: Vec<f64>,
}

impl From<Times> for Calibrated {
    fn from(times: Times) -> Self {
        let measured = |times: Vec<f64>| {
            // Negative numbers and NaN count as 0.
            let span = |ms: f64| Span::from_millis(ms.clamp(0.0, 1e9));
            Service::measured(times.into_iter().map(span).collect())
        };
        Self {
            read: measured(times.read_ms),
            write: measured(times.write_ms),
            moved: measured(times.moved_ms),
            translation: None,
        }
    }
}

/// Measures each kind of job on a drive of the profile, alone, with the arm elsewhere before. The data lies all over
/// the drive.
///
/// # Errors
/// The profile cannot be built, or its drive refuses these jobs.
pub fn calibrate(
    profile: &Profile,
    back_end: BackEnd,
    sizes: Sizes,
    seed: u64,
) -> Result<Calibrated, Impossible> {
    let zone = profile.zones.as_ref().map(|zones| zones.zone_size_bytes);
    let block_drive = profile.capacity_bytes / 16 * 15;
    let bytes = zone.map_or(block_drive, |zone| zone * ZONES);
    let mut disk = ModelDisk::new(profile, seed, back_end, (bytes, true))?;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut now = Time::START;
    let job = |work, bytes, from, to| Job {
        owner: Owner::Cleaner,
        work,
        bytes,
        from,
        to,
    };
    // Where new data and moved data are written, in the middle of the data that is read.
    let mut next = [bytes / 2, bytes / 4];
    let is_written_to =
        |n: u64| (n % (ZONES / 4)) < ZONES / 8 && !(n / (ZONES / 4)).is_multiple_of(3);
    if let Some(zone) = zone {
        for n in (0..ZONES).filter(|n| !is_written_to(*n)) {
            now = disk.prefill(n * zone, zone / 16, now);
        }
    }
    let place = |random: &mut fastrand::Rng, length: u64| match zone {
        Some(zone) => {
            let n = std::iter::repeat_with(|| random.u64(..ZONES)).find(|n| !is_written_to(*n));
            let inside = (zone / 16).saturating_sub(length) / BLOCK_BYTES;
            n.unwrap_or_default() * zone + random.u64(..=inside) * BLOCK_BYTES
        }
        None => random.u64(..=bytes.saturating_sub(length) / BLOCK_BYTES) * BLOCK_BYTES,
    };
    let mut took: [Vec<Span>; 3] = Default::default();
    let mut run = |disk: &mut ModelDisk, job: Job, times: &mut Vec<Span>| {
        let ended = disk.alone(job, now);
        // The platters turn for a random time before the next job.
        now = ended.at + Span::from_micros(random.f64() * 20_000.0);
        times.push(ended.took);
    };
    let mut places = fastrand::Rng::with_seed(seed ^ 1);
    let room = zone.map_or(bytes / 4, |zone| zone * (ZONES / 8 - 1));
    let jobs = JOBS.min(room / sizes.part.max(sizes.piece).max(1)).max(1);
    for _ in 0..jobs {
        for (kind, work, length) in [(1, Work::Write, sizes.part), (2, Work::Move, sizes.piece)] {
            let read = job(Work::Read, sizes.part, place(&mut places, sizes.part), 0);
            run(&mut disk, read, &mut took[0]);
            let to = &mut next[kind - 1];
            // Nothing is written across the end of a zone.
            if let Some(zone) = zone
                && *to % zone + length > zone
            {
                *to = to.next_multiple_of(zone);
            }
            let from = place(&mut places, length);
            run(&mut disk, job(work, length, from, *to), &mut took[kind]);
            *to += length.next_multiple_of(BLOCK_BYTES);
        }
    }
    // A refusal takes next to no time, and would be measured as the time of a job.
    if disk.refused() > 0 {
        return Err(Impossible::Drive(if zone.is_some() {
            "the drive refuses requests while times are measured, which writes to 128 zones: give the profile so many \
             sequential zones, and one conventional zone or more, all of which can be open"
        } else {
            "the drive refuses requests while times are measured: it is too small for objects of this size"
        }));
    }
    let translation = translation(profile, &mut disk, now, sizes);
    let [read, write, moved] = took.map(Service::measured);
    Ok(Calibrated {
        read,
        write,
        moved,
        translation,
    })
}

/// The persistent cache of the profile, with the mean time that a band took when an idle hour cleaned what was
/// written. `None` if the profile has no such cache, or nothing was cleaned.
fn translation(
    profile: &Profile,
    disk: &mut ModelDisk,
    now: Time,
    sizes: Sizes,
) -> Option<Translation> {
    let LayerShape::Seagate(layer) = &profile.layer else {
        return None;
    };
    disk.idle_until(now + Span::from_seconds(3_600.0));
    let cleaning = disk.model().statistics().cleaning;
    let nanos = cleaning.nanos.checked_div(cleaning.bands)?;
    let tracks = u64::from(layer.band_tracks);
    let track = u64::from(profile.shape.outer_track_blocks + profile.shape.inner_track_blocks) / 2;
    let band_bytes = tracks * track * BLOCK_BYTES;
    Some(Translation {
        cache_bytes: u64::from(layer.cache_payload_blocks) * BLOCK_BYTES,
        band_frees_bytes: (band_bytes as f64 * sizes.band_part) as u64,
        band: Service::Constant(Span::from_nanos(nanos)),
        idle: Span::from_millis(layer.idle_before_cleaning_ms),
        cached_bytes: 0,
    })
}
