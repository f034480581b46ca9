//! Test 12 (section 2.4.10): reads that go to and fro between two bands, before one of them is
//! cleaned and after. Their angles to each other are the same if it has stayed where it was.

use crate::finding::{Finding, Mapping};
use crate::statistics::{median, share_near};
use crate::target::{Target, TargetError, gather, millis};
use drive_model::{Lba, Request};

/// Latencies of the same reads before and after cleaning, in milliseconds.
#[derive(Clone, PartialEq, Debug)]
pub struct Observed {
    /// Milliseconds of a turn.
    pub turn_ms: f64,
    /// Before the band was cleaned.
    pub before: Vec<f64>,
    /// After the band was cleaned.
    pub after: Vec<f64>,
}

/// Number of bands compared with the first: one that has moved may be at the same angle by chance, three are not.
pub const BANDS: u64 = 3;

/// Reads blocks of two stretches in turn.
///
/// # Errors
/// The target does not answer.
pub fn read(target: &mut dyn Target, a: Lba, b: Lba) -> Result<Vec<f64>, TargetError> {
    let pairs = (0..128u64).flat_map(|n| {
        [
            Request::read(a.plus(n * 4), 4),
            Request::read(b.plus(n * 4), 4),
        ]
    });
    Ok(millis(&gather(target, 1, pairs)?))
}

/// Reads that go to one of the two bands, in a row, whose middle change counts: noise is less in it, and few
/// answers that are late are none.
const ROW: usize = 16;
/// Largest difference of equal angles, in turns.
const SAME: f64 = 0.03;

/// Of all rows, so many are at the same angle as before where nothing has moved, and no more where something has. In
/// between nothing is said.
const STAYED: f64 = 0.7;
const MOVED: f64 = 0.5;

/// Draws the conclusion from the measurements.
pub fn infer(observed: &Observed) -> Option<Finding<Mapping>> {
    let change = |(before, after): (&f64, &f64)| {
        // Whole turns make no difference to the angle.
        let turns = (after - before) / observed.turn_ms;
        turns - turns.round()
    };
    let all: Vec<f64> = (observed.before.iter().zip(&observed.after))
        .map(change)
        .collect();
    let there = |row: &[f64], band: usize| -> f64 {
        let one: Vec<f64> = row.iter().skip(band).step_by(2).copied().collect();
        median(&one)
    };
    let rows = all.chunks(2 * ROW).filter(|row| row.len() >= ROW);
    let changes: Vec<f64> = rows
        .flat_map(|row| [there(row, 0), there(row, 1)])
        .collect();
    let same = share_near(&changes, 0.0, SAME);
    match same {
        STAYED.. => Some(Finding::new(Mapping::Static, same)),
        ..MOVED => Some(Finding::new(Mapping::Dynamic, 1.0 - same)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drive_model::Random;

    #[test]
    fn another_angle_is_another_place() {
        let before: Vec<f64> = (0..100).map(|n| 5.0 + f64::from(n % 7)).collect();
        let with = |f: fn(f64) -> f64| {
            let after = before.iter().map(|x| f(*x)).collect();
            let before = before.clone();
            infer(&Observed {
                turn_ms: 10.0,
                before,
                after,
            })
            .unwrap()
            .value
        };
        assert_eq!(with(|x| x), Mapping::Static);
        assert_eq!(with(|x| x + 10.05), Mapping::Static);
        assert_eq!(with(|x| x + 3.0), Mapping::Dynamic);
        assert_eq!(with(|x| x + 5.0), Mapping::Dynamic, "half a turn");
    }

    /// Half a millisecond of jitter, with one answer in twenty that is late by far.
    #[test]
    fn noise_is_no_movement() {
        let mut random = Random::new(1);
        let mut noisy = |moved: f64| {
            let mut latency = |to: f64| {
                let late = if random.below(20) == 0 { 33.3 } else { 0.0 };
                to + late + random.below(1_000) as f64 / 1_000.0 - 0.5
            };
            let before: Vec<f64> = (0..768).map(|n| latency(5.0 + f64::from(n % 7))).collect();
            let after = (0..768).map(|n| latency(5.0 + moved + f64::from(n % 7)));
            let after = after.collect();
            infer(&Observed {
                turn_ms: 8.3,
                before,
                after,
            })
            .unwrap()
            .value
        };
        assert_eq!(noisy(0.0), Mapping::Static);
        assert_eq!(noisy(1.0), Mapping::Dynamic);
        assert_eq!(noisy(4.15), Mapping::Dynamic);
    }
}
