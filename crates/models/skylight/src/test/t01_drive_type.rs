//! Test 1 (section 2.4.3): random writes within a small region. On a conventional disk they take
//! times of all kinds; a translation layer writes one behind the other, each a whole turn (or a
//! journal entry) after the last, or at once into flash.
//!
//! The times alone would also be those of a disk with something else in front of it. So the blocks are
//! looked for where they should be, with others that nobody has written for comparison: if not even
//! those are found in their places, nothing can be told. Drives with zones show themselves by what they
//! refuse. Flash rests on reads of blocks that were written: others a drive may answer without a look at
//! its medium.

use crate::finding::{CacheType, DriveType, Finding};
use crate::place::{behind_neighbours, is_native, native};
use crate::statistics::{median, share_near};
use crate::target::{Target, TargetError, Told, Zoned, attempt, gather, millis};
use crate::test::t01_still::{FLASH_MS, Kind, READS, still, written};
use drive_model::Random;
use drive_model::{Failure, Lba, Request, RequestKind};

/// Measurements of the test.
#[derive(Clone, PartialEq, Debug)]
pub struct Observed {
    /// Milliseconds of a turn, if there are turns.
    pub turn_ms: Option<f64>,
    /// Whether writes are known to be answered only when they are out of any volatile cache.
    pub durable: bool,
    /// Zone characteristics that the drive reports.
    pub told: Told,
    /// Whether the drive supports zone commands.
    pub zone_commands: bool,
    /// The first write that was refused.
    pub refused: Option<Lba>,
    /// Where zones may begin: what became of writes of the first block, of the one behind it, and of the
    /// first again.
    pub order: Vec<[bool; 3]>,
    /// Writes within the first GiB, as in the paper, in milliseconds.
    pub wide: Vec<f64>,
    /// Writes within the first 8 MiB: so few that one band has them all.
    pub narrow: Vec<f64>,
    /// Random reads across the drive; if nothing turns, of blocks that were written.
    pub reads: Vec<f64>,
    /// Random reads within some MiB; if nothing turns, of blocks that were written.
    pub near_reads: Vec<f64>,
    /// For each written block, whether it is in its native place.
    pub written: Vec<bool>,
    /// Milliseconds of reading the written blocks, each after its neighbour.
    pub read_back: Vec<f64>,
    /// For blocks that were not written: milliseconds after their neighbours, as median of several readings.
    pub control: Vec<f64>,
}

/// Random writes within some first blocks, up to the first that is refused.
struct FirstWrites {
    places: Vec<Lba>,
    millis: Vec<f64>,
    refused: Option<Lba>,
}

fn write(
    target: &mut dyn Target,
    random: &mut Random,
    region: u64,
) -> Result<FirstWrites, TargetError> {
    let places = random.shuffled(region.min(target.blocks() / 4));
    let places: Vec<Lba> = places.into_iter().take(256).map(Lba).collect();
    let writes = places.iter().map(|lba| Request::write(*lba, 1));
    let (answers, failure) = attempt(target, writes)?;
    Ok(FirstWrites {
        refused: failure.and(places.get(answers.len()).copied()),
        millis: millis(&answers),
        places,
    })
}

/// Runs the workload.
///
/// # Errors
/// The target does not answer.
pub fn workload(
    target: &mut dyn Target,
    turn_ms: Option<f64>,
    durable: bool,
    random: &mut Random,
) -> Result<Observed, TargetError> {
    let blocks = target.blocks();
    let wide = write(target, random, 1 << 18)?;
    let narrow = write(target, random, 1 << 11)?;
    // Where the drive has zones, whatever their size, one begins at a large power of two. The first
    // blocks may be of conventional zones; these are hardly where a zone is written to next.
    let power = 1 << (blocks / 8).max(1).ilog2();
    let mut refused = wide.refused.or(narrow.refused);
    let mut order = Vec::new();
    for part in [3, 5, 7] {
        let first = Lba(power * part);
        let mut done = |lba| -> Result<bool, TargetError> {
            let (_, failure) = attempt(target, [Request::write(lba, 1)])?;
            refused = refused.or(failure.and(Some(lba)));
            Ok(failure.is_none())
        };
        order.push([done(first)?, done(first.plus(1))?, done(first)?]);
    }
    let closed = [Request::on_zone(RequestKind::CloseZone, Lba(0))];
    let (_, zone_answer) = attempt(target, closed)?;
    let mut observed = Observed {
        turn_ms,
        durable,
        told: target.told(),
        zone_commands: zone_answer != Some(Failure::Unsupported),
        refused,
        order,
        wide: wide.millis,
        narrow: narrow.millis,
        reads: Vec::new(),
        near_reads: Vec::new(),
        written: Vec::new(),
        read_back: Vec::new(),
        control: Vec::new(),
    };
    // A drive with zones may refuse to read unwritten blocks.
    if refused.is_some() {
        return Ok(observed);
    }
    let Some(turn_ms) = turn_ms else {
        let near = &narrow.places;
        (observed.refused, observed.reads, observed.near_reads) = written(target, random, near)?;
        return Ok(observed);
    };
    let read = |at: u64| Request::read(Lba(at), 1);
    let across: Vec<Request> = (0..READS).map(|_| read(random.below(blocks))).collect();
    observed.reads = millis(&gather(target, 1, across)?);
    let region = (1 << 12).min(blocks / 4);
    let near: Vec<Request> = (0..READS)
        .map(|_| read(blocks / 2 + random.below(region)))
        .collect();
    observed.near_reads = millis(&gather(target, 1, near)?);
    // Reads large requests elsewhere, to push recent blocks out of the drive's memory.
    let other = blocks / 8 * 5;
    let large = (0..64).map(|n| Request::read(Lba(other + n * 256), 256));
    gather(target, 1, large.filter(|large| large.end().0 <= blocks))?;
    // Every neighbour has to be a block that was not written with those; few were by what came before.
    let (mut marks, mut all) = (narrow.places.clone(), narrow.places);
    all.sort_unstable();
    marks.retain(|lba| all.binary_search(&lba.plus(1)).is_err());
    marks.truncate(LOOKED_AT);
    let (native_marks, answers) = native(target, turn_ms, &marks)?;
    observed.written = native_marks;
    observed.read_back = millis(&answers);
    let untouched = blocks / 4 + 1;
    let room = (blocks / 8).saturating_sub(3).max(1);
    let controls: Vec<Lba> = (0..LOOKED_AT)
        .map(|_| Lba(untouched + random.below(room)))
        .collect();
    observed.control = behind_neighbours(target, turn_ms, &controls)?.millis;
    Ok(observed)
}

/// Milliseconds of writes, by blocks of a write.
pub type BySize = Vec<(u32, Vec<f64>)>;

/// Behind test 1 (figure 2.7): random writes of each size, 31 at a time. Where they are gathered into
/// journal entries, the latency grows in steps.
///
/// # Errors
/// The target does not answer.
pub fn by_size(target: &mut dyn Target, random: &mut Random) -> Result<BySize, TargetError> {
    const SIZES: [u32; 12] = [1, 4, 6, 7, 10, 13, 14, 17, 20, 21, 32, 64];
    let mut all = Vec::new();
    for size in SIZES {
        let places = target.blocks() / 64;
        let writes = (0..256).map(|_| Request::write(Lba(random.below(places) * 64), size));
        let writes: Vec<Request> = writes.collect();
        all.push((size, millis(&gather(target, 31, writes)?)));
    }
    Ok(all)
}

/// Number of blocks of each kind whose places are checked.
const LOOKED_AT: usize = 64;

/// The part of all writes that takes the same time: one latency of the drive's, within a twentieth
/// of a turn.
fn fixed(latencies: &[f64], turn_ms: f64) -> f64 {
    let middle = median(latencies);
    share_near(latencies, middle, turn_ms * 0.05)
}

fn share(all: &[bool]) -> f64 {
    all.iter().filter(|yes| **yes).count() as f64 / all.len().max(1) as f64
}

/// Share of latencies that are too short for a disk.
fn quick(all: &[f64]) -> f64 {
    let under = all.iter().filter(|latency| **latency < FLASH_MS).count();
    under as f64 / all.len().max(1) as f64
}

/// Determines the kind of drive, or why it cannot be determined.
///
/// # Errors
/// The reason in words.
pub fn infer(observed: &Observed) -> Result<Kind, &'static str> {
    let zoned = observed.told.zoned;
    if observed.refused.is_some() {
        return in_order(observed, zoned);
    }
    if observed.zone_commands || zoned == Some(Zoned::HostAware) {
        return Ok((Finding::new(DriveType::HostAware, 1.0), None));
    }
    match observed.turn_ms {
        Some(turn_ms) => turning(observed, turn_ms),
        None => still(&observed.reads, &observed.near_reads),
    }
}

/// Writes are refused. A drive with zones takes the first block of an empty one, and the one behind it,
/// and then not the first.
fn in_order(observed: &Observed, zoned: Option<Zoned>) -> Result<Kind, &'static str> {
    let managed = |sure| Ok((Finding::new(DriveType::HostManaged, sure), None));
    let pattern = |order: &&[bool; 3]| **order == [true, true, false];
    let seen = observed.order.iter().filter(pattern).count();
    let against = observed.order.iter().any(|order| order[2]);
    match (seen, against) {
        (1.., false) => managed(1.0),
        // Some of its zones are conventional, wherever they are.
        (1.., true) if observed.zone_commands || zoned == Some(Zoned::HostManaged) => managed(1.0),
        (_, false) if zoned == Some(Zoned::HostManaged) => managed(1.0),
        // All its zones are in use, if it has any; a broken drive behaves alike.
        (0, false) => Err("it refuses writes, but was not seen to take them in order"),
        _ => Err("it refuses some writes, and takes others out of order: it may be failing"),
    }
}

/// Judges a drive whose platters rotate.
fn turning(observed: &Observed, turn_ms: f64) -> Result<Kind, &'static str> {
    let control = observed.control.iter();
    let control: Vec<bool> = control.map(|millis| is_native(*millis, turn_ms)).collect();
    let control = share(&control);
    if control < 0.7 {
        return Err(
            "blocks that nobody has written are not found in their places: something \
                    disturbs the times, such as other requests",
        );
    }
    let managed = |cache, sure: f64| {
        let kind = Finding::new(DriveType::DriveManaged, sure);
        Ok((kind, Some(Finding::new(cache, sure))))
    };
    let home = share(&observed.written);
    let away = control * (1.0 - home);
    if quick(&observed.wide) > 0.9 {
        return match (observed.durable, home < 0.3) {
            (false, _) => Err(
                "writes are answered at once, by a cache that could not be switched \
                               off or by one that outlasts a power cut",
            ),
            (true, true) => managed(CacheType::Flash, quick(&observed.wide)),
            (true, false) => Err("writes are answered at once, but are in their places soon after"),
        };
    }
    // A tenth of a turn wide: a conventional disk has a tenth of its writes there.
    let fixed = fixed(&observed.wide, turn_ms).max(fixed(&observed.narrow, turn_ms));
    if quick(&observed.read_back) > 0.3 {
        return Err("what was written is read from a memory, not from the disk");
    }
    match (home, fixed) {
        (..0.3, _) => managed(CacheType::Disk, away.max(fixed)),
        (0.7.., ..0.6) => {
            let sure = home * (1.0 - fixed).max(0.5);
            Ok((Finding::new(DriveType::Conventional, sure), None))
        }
        // As on a file system with a journal, each of whose writes ends in place.
        (0.7.., _) => Err(
            "writes take one time, as if one were behind the other, but are found in \
                           their places",
        ),
        _ => Err("some blocks are in their places and some are not"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(wide: impl Fn(f64) -> f64, narrow: impl Fn(f64) -> f64, home: bool) -> Observed {
        let all = |f: &dyn Fn(f64) -> f64| (0..100).map(|n| f(f64::from(n) / 100.0)).collect();
        Observed {
            turn_ms: Some(10.0),
            durable: true,
            told: Told::default(),
            zone_commands: false,
            refused: None,
            order: vec![[true; 3]; 3],
            wide: all(&wide),
            narrow: all(&narrow),
            reads: vec![14.0; 100],
            near_reads: vec![6.0; 100],
            written: vec![home; 64],
            read_back: vec![9.0; 64],
            control: vec![10.0; 64],
        }
    }

    fn kind(observed: &Observed) -> Option<DriveType> {
        infer(observed).ok().map(|(kind, _)| kind.value)
    }

    fn varied(x: f64) -> f64 {
        2.0 + 10.0 * x
    }

    #[test]
    fn blocks_elsewhere_are_a_translation_layers() {
        let at_home = observed(varied, varied, true);
        assert_eq!(kind(&at_home), Some(DriveType::Conventional));
        for (wide, narrow) in [(10.1, 7.0), (7.0, 10.1)] {
            let away = observed(|_| wide, |_| narrow, false);
            let (kind, cache) = infer(&away).unwrap();
            assert_eq!(kind.value, DriveType::DriveManaged);
            assert_eq!(cache.unwrap().value, CacheType::Disk);
        }
        let (_, cache) = infer(&observed(|_| 0.2, |_| 0.2, false)).unwrap();
        assert_eq!(cache.unwrap().value, CacheType::Flash);
    }

    #[test]
    fn what_does_not_go_together_cannot_be_told() {
        let one_time = observed(|_| 10.1, |_| 10.1, true);
        assert_eq!(kind(&one_time), None);
        let mut noise = observed(varied, varied, false);
        noise.control = (0..64).map(|n| 10.0 + f64::from(n % 2)).collect();
        assert_eq!(kind(&noise), None);
        let mut cached = observed(|_| 0.2, |_| 0.2, false);
        cached.durable = false;
        assert_eq!(kind(&cached), None);
        let mut memory = observed(varied, varied, false);
        memory.read_back = vec![0.2; 64];
        assert_eq!(kind(&memory), None);
    }

    #[test]
    fn flash_knows_no_distance() {
        let mut flash = observed(|_| 0.1, |_| 0.1, false);
        flash.turn_ms = None;
        flash.reads = vec![0.1; 100];
        flash.near_reads = vec![0.1; 100];
        assert_eq!(kind(&flash), Some(DriveType::Flash));
        // A disk that reads most from a memory, and noise.
        flash.reads = vec![1.9; 100];
        assert_eq!(kind(&flash), None);
        flash.reads = (0..100).map(f64::from).collect();
        assert_eq!(kind(&flash), None);
    }

    #[test]
    fn zones_show_by_order() {
        let mut zones = observed(varied, varied, true);
        zones.refused = Some(Lba(1));
        zones.order = vec![[true, true, false], [false; 3], [true, true, false]];
        assert_eq!(kind(&zones), Some(DriveType::HostManaged));
        // All zones are in use, or the drive is broken.
        zones.order = vec![[false; 3]; 3];
        assert_eq!(kind(&zones), None);
        zones.told.zoned = Some(Zoned::HostManaged);
        assert_eq!(kind(&zones), Some(DriveType::HostManaged));
        // One write that failed.
        zones.order = vec![[true; 3]; 3];
        assert_eq!(kind(&zones), None);
        zones.refused = None;
        zones.told.zoned = Some(Zoned::HostAware);
        assert_eq!(kind(&zones), Some(DriveType::HostAware));
    }
}
