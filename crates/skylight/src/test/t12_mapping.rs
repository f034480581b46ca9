//! Test 12 (section 2.4.10): reads that go to and fro between two bands, before one of them is
//! cleaned and after. Their angles to each other are the same if it has stayed where it was.

use crate::finding::{Finding, Mapping};
use crate::statistics::share_near;
use crate::target::{Target, TargetError, gather, millis};
use drive_model::{Lba, Request};

/// The latencies of the same reads before and after, in milliseconds.
#[derive(Clone, PartialEq, Debug)]
pub struct Observed {
    /// Milliseconds of a turn.
    pub turn_ms: f64,
    /// Before.
    pub before: Vec<f64>,
    /// After.
    pub after: Vec<f64>,
}

/// Bands that are compared with the first: one that has moved may stand at the same angle by chance,
/// three do not.
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

/// What follows.
pub fn infer(observed: &Observed) -> Finding<Mapping> {
    let changes: Vec<f64> = (observed.before.iter().zip(&observed.after).skip(2))
        .map(|(before, after)| {
            // A turn more or less is the same angle.
            let turns = (after - before) / observed.turn_ms;
            turns - turns.round()
        })
        .collect();
    let same = share_near(&changes, 0.0, 0.02);
    if same > 0.7 {
        Finding::new(Mapping::Static, same)
    } else {
        Finding::new(Mapping::Dynamic, 1.0 - same)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            .value
        };
        assert_eq!(with(|x| x), Mapping::Static);
        assert_eq!(with(|x| x + 10.05), Mapping::Static);
        assert_eq!(with(|x| x + 3.0), Mapping::Dynamic);
    }
}
