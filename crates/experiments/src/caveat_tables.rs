//! Measures how much more space than data a Caveat-Scriptor file system needs when it ages, by allocator.

use crate::expected::Expected;
use crate::experiment::{Experiment, Outcome, Run, Stopped};
use caveat::{Aging, Fit};

const SOURCE: &str = "Caveat-Scriptor (thesis, Carnegie Mellon, 2014), section 5.3";

/// The printed numbers by allocator, in per cent: blocks beyond the data, and blocks that cannot be used.
struct Printed {
    more: [f64; 5],
    unusable: [f64; 5],
}

/// In the order of [`Fit::ALL`]. Unusable blocks are the percentages of print.
const AT_16: Printed = Printed {
    more: [4.0, 5.0, 2.0, 2.0, 5.0],
    unusable: [3.04, 3.06, 0.35, 0.44, 0.30],
};
/// The same. Print has the unusable blocks of first fit and worst fit in per cent of each other's totals: of their own,
/// they are 20.11 % and 18.19 %. Of first fit it has more of them than free ones.
const AT_512: Printed = Printed {
    more: [25.0, 25.0, 10.0, 10.0, 30.0],
    unusable: [18.65, 19.33, 3.00, 2.33, 18.92],
};

pub const TABLE_5_1: Experiment = Experiment {
    id: "caveat-table-5.1",
    title: "Over-allocation and unusable blocks of five allocators, isolation distance 16",
    source: SOURCE,
    expected: || expected(&AT_16),
    measure: |run| measure(run, 16),
};

pub const TABLE_5_2: Experiment = Experiment {
    id: "caveat-table-5.2",
    title: "Over-allocation and unusable blocks of five allocators, isolation distance 512",
    source: SOURCE,
    expected: || expected(&AT_512),
    measure: |run| measure(run, 512),
};

fn expected(printed: &Printed) -> Vec<Expected> {
    let rows = Fit::ALL.iter().zip(printed.more).zip(printed.unusable);
    rows.flat_map(|((fit, more), unusable)| {
        let drive = format!("{}: more than the data needs", fit.name());
        let small = format!("{}: blocks that cannot be used", fit.name());
        [
            Expected::value(drive, "%", more).part(0.1),
            Expected::value(small, "%", unusable).part(0.1),
        ]
    })
    .collect()
}

fn measure(run: &mut Run<'_>, distance: u64) -> Result<Outcome, Stopped> {
    let aging = Aging::thesis(distance, run.seed);
    let mut measured = Vec::new();
    for fit in Fit::ALL {
        run.next(fit.name())?;
        // A shorter run would measure something else: holes form with age.
        let found = aging.least(fit, 1).map_err(Stopped::store)?;
        let (more, unusable) = found.map_or((f64::NAN, f64::NAN), |(_, aged)| {
            let total = aged.total_blocks as f64;
            let unusable = 100.0 * aged.unusable_blocks as f64 / total;
            let more = 100.0 * (total / aging.usable_blocks as f64 - 1.0);
            (more, unusable)
        });
        measured.extend([more, unusable]);
    }
    Ok(measured.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_what_the_totals_say() {
        for (total, more) in [(272_642.0, 4.0), (275_354.0, 5.0), (267_399.0, 2.0)] {
            assert!(AT_16.more.contains(&more));
            assert!((total / 262_144.0 - 1.0 - more / 100.0_f64).abs() < 0.001);
        }
        for (total, more) in [(327_693.0, 25.0), (288_371.0, 10.0), (340_800.0, 30.0)] {
            assert!(AT_512.more.contains(&more));
            assert!((total / 262_144.0 - 1.0 - more / 100.0_f64).abs() < 0.001);
        }
    }

    #[test]
    fn unusable_blocks_are_printed_in_per_cent_of_a_total() {
        let unusable = [8_287.0, 8_437.0, 936.0, 1_166.0, 819.0];
        let totals = [272_642.0, 275_354.0, 267_399.0, 267_399.0, 275_354.0];
        are_per_cent(&AT_16, unusable, totals);
        let unusable = [61_120.0, 65_891.0, 8_651.0, 6_708.0, 62_005.0];
        // First fit's own total is the last one, and worst fit's the second.
        let totals = [327_693.0, 340_800.0, 288_371.0, 288_371.0, 327_693.0];
        are_per_cent(&AT_512, unusable, totals);
    }

    fn are_per_cent(printed: &Printed, unusable: [f64; 5], totals: [f64; 5]) {
        for (n, percent) in printed.unusable.into_iter().enumerate() {
            let found = 100.0 * unusable[n] / totals[n];
            assert!((found - percent).abs() < 0.006, "{found} {percent}");
        }
    }
}
