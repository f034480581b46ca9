//! Test 1 on a drive without rotation: flash, or something that looks like it. It relies on blocks that were written,
//! because a drive may answer reads of others without touching its medium.

use crate::finding::{CacheType, DriveType, Finding};
use crate::statistics::{median, quantile};
use crate::target::{Target, TargetError, attempt, gather, millis};
use drive_model::Random;
use drive_model::{Lba, Request, Span};

/// Kind of drive, and of its persistent cache if it has one.
pub type Kind = (Finding<DriveType>, Option<Finding<CacheType>>);

/// Milliseconds below which an access did not touch a disk.
pub(crate) const FLASH_MS: f64 = 2.0;

/// Number of random reads of each kind.
pub(crate) const READS: usize = 128;
/// Number of requests of 1 MiB that push written blocks out of a drive's memory: the caches of today's disks are no
/// larger.
const PUSHED: u64 = 256;
/// Long enough for flash to program acknowledged writes.
const SETTLE: Span = Span::from_nanos(5_000_000_000);

/// The first refused write, milliseconds of reads across the drive, and of those among `near`.
type Reads = (Option<Lba>, Vec<f64>, Vec<f64>);

/// Reads written blocks, across the drive and among `near`, once they are in no memory any more.
///
/// # Errors
/// The target does not answer.
pub(crate) fn written(
    target: &mut dyn Target,
    random: &mut Random,
    near: &[Lba],
) -> Result<Reads, TargetError> {
    let blocks = target.blocks();
    let far: Vec<Lba> = (0..READS).map(|_| Lba(random.below(blocks))).collect();
    let pushed = (0..PUSHED.min(blocks / 8 / 256))
        .map(|n| Request::write(Lba(blocks / 2 / 256 * 256 + n * 256), 256));
    let writes: Vec<Request> = (far.iter().map(|lba| Request::write(*lba, 1)))
        .chain(pushed)
        .collect();
    let (answers, failure) = attempt(target, writes.iter().copied())?;
    if failure.is_some() {
        let refused = writes.get(answers.len()).map(|request| request.lba);
        return Ok((refused, Vec::new(), Vec::new()));
    }
    target.pause(SETTLE);
    let mut reads = |all: &[Lba]| {
        let order = random.shuffled(all.len() as u64);
        let places = order.iter().filter_map(|n| all.get(*n as usize));
        let reads: Vec<Request> = (places.take(READS))
            .map(|lba| Request::read(*lba, 1))
            .collect();
        Ok::<_, TargetError>(millis(&gather(target, 1, reads)?))
    };
    Ok((None, reads(&far)?, reads(near)?))
}

/// Judges a drive without rotation: flash, or something that looks like it, if distance costs nothing.
pub(crate) fn still(reads: &[f64], near_reads: &[f64]) -> Result<Kind, &'static str> {
    let (far, near) = (median(reads), median(near_reads));
    if quantile(reads, 0.9) >= FLASH_MS {
        return Err("nothing is seen to turn, but it is too slow for flash, or too uneven");
    }
    // A disk that answers from a memory does so only for recently read blocks.
    if far > 3.0 * near + 0.2 {
        return Err("nothing is seen to turn, but what is far away takes longer");
    }
    Ok((Finding::new(DriveType::Flash, 1.0), None))
}
