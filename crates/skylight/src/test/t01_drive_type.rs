//! Test 1 (section 2.4.3): random writes within a small region. On a conventional disk they take
//! times of all kinds; a translation layer writes one behind the other, each a whole turn (or a
//! journal entry) after the last, or at once into flash.

use crate::finding::{CacheType, DriveType, Finding};
use crate::random::Random;
use crate::statistics::{median, quantile, share_near};
use crate::target::{Answer, Target, TargetError, gather, millis};
use drive_model::{Lba, Request};

/// How the drive took the test.
#[derive(Clone, PartialEq, Debug)]
pub struct Observed {
    /// Milliseconds of a turn, if there are turns.
    pub turn_ms: Option<f64>,
    /// A write was refused: zones.
    pub refused: bool,
    /// Writes within the first GiB, as in the paper.
    pub wide: Vec<f64>,
    /// Writes within the first 8 MiB: so few that one band has them all.
    pub narrow: Vec<f64>,
    /// Random reads across the drive.
    pub reads: Vec<f64>,
}

fn write(
    target: &mut dyn Target,
    random: &mut Random,
    region: u64,
) -> Result<Vec<Answer>, TargetError> {
    let places = random.shuffled(region.min(target.blocks() / 4));
    let writes = places
        .into_iter()
        .take(256)
        .map(|lba| Request::write(Lba(lba), 1));
    gather(target, 1, writes)
}

/// Has the drive do it.
///
/// # Errors
/// The target does not answer.
pub fn workload(
    target: &mut dyn Target,
    turn_ms: Option<f64>,
    random: &mut Random,
) -> Result<Observed, TargetError> {
    let wide = write(target, random, 1 << 18)?;
    let narrow = write(target, random, 1 << 11)?;
    let blocks = target.blocks();
    // The first GiB may be of conventional zones; these are hardly where a zone is written to next.
    let elsewhere = [3, 5, 7].map(|eighths| Request::write(Lba(blocks / 8 * eighths + 11), 1));
    let elsewhere = gather(target, 1, elsewhere)?;
    let reads = (0..128).map(|_| Request::read(Lba(random.below(blocks)), 1));
    let reads: Vec<Request> = reads.collect();
    let reads = gather(target, 1, reads)?;
    Ok(Observed {
        turn_ms,
        refused: (wide.iter().chain(&narrow).chain(&elsewhere))
            .any(|answer| answer.result.is_err()),
        wide: millis(&wide),
        narrow: millis(&narrow),
        reads: millis(&reads),
    })
}

/// Milliseconds of writes by their blocks.
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

/// Writes that take less are not on a disk.
const FLASH_MS: f64 = 2.0;

/// The part of all writes that takes the same time: one latency of the drive's, within a twentieth
/// of a turn.
fn fixed(latencies: &[f64], turn_ms: f64) -> f64 {
    let middle = median(latencies);
    share_near(latencies, middle, turn_ms * 0.05)
}

/// What follows: the kind of drive, and of its persistent cache if it has one.
pub fn infer(observed: &Observed) -> (Finding<DriveType>, Option<Finding<CacheType>>) {
    if observed.refused {
        return (Finding::new(DriveType::HostManaged, 1.0), None);
    }
    let Some(turn) = observed.turn_ms else {
        // What does not turn is flash, unless it is a disk that cannot be kept from caching.
        let sure = if quantile(&observed.reads, 0.9) < FLASH_MS {
            1.0
        } else {
            0.5
        };
        return (Finding::new(DriveType::Flash, sure), None);
    };
    let managed = |cache, sure| {
        let kind = Finding::new(DriveType::DriveManaged, sure);
        (kind, Some(Finding::new(cache, sure)))
    };
    let quick = |all: &[f64]| {
        let under = all.iter().filter(|latency| **latency < FLASH_MS).count();
        under as f64 / all.len().max(1) as f64
    };
    if quick(&observed.wide) > 0.9 {
        return managed(CacheType::Flash, quick(&observed.wide));
    }
    // A tenth of a turn wide: a conventional disk has a tenth of its writes there.
    let share = fixed(&observed.wide, turn).max(fixed(&observed.narrow, turn));
    if share > 0.6 {
        return managed(CacheType::Disk, share);
    }
    let sure = 1.0 - share;
    (Finding::new(DriveType::Conventional, sure), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(wide: impl Fn(f64) -> f64, narrow: impl Fn(f64) -> f64) -> Observed {
        let all = |f: &dyn Fn(f64) -> f64| (0..100).map(|n| f(f64::from(n) / 100.0)).collect();
        Observed {
            turn_ms: Some(10.0),
            refused: false,
            wide: all(&wide),
            narrow: all(&narrow),
            reads: vec![14.0; 100],
        }
    }

    #[test]
    fn latencies_of_one_kind_are_a_translation_layers() {
        let varied = |x: f64| 2.0 + 10.0 * x;
        let (kind, cache) = infer(&observed(varied, varied));
        assert_eq!((kind.value, cache), (DriveType::Conventional, None));
        let (kind, cache) = infer(&observed(|_| 10.1, varied));
        assert_eq!(kind.value, DriveType::DriveManaged);
        assert_eq!(cache.unwrap().value, CacheType::Disk);
        let (kind, _) = infer(&observed(varied, |_| 10.1));
        assert_eq!(kind.value, DriveType::DriveManaged);
        let (_, cache) = infer(&observed(|_| 0.2, |_| 0.2));
        assert_eq!(cache.unwrap().value, CacheType::Flash);
        let mut flash = observed(|_| 0.1, |_| 0.1);
        flash.turn_ms = None;
        flash.reads = vec![0.1; 100];
        assert_eq!(infer(&flash).0, Finding::new(DriveType::Flash, 1.0));
    }
}
