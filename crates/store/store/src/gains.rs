//! Detects when cleaning gains nothing any more. A compressed piece lies in one zone, so where such pieces do not fill
//! zones, each zone that is cleaned may leave as large an unusable tail in another zone.

/// Zones cleaned in a row without a gain after which cleaning counts as vain.
const PATIENCE: u32 = 8;

/// Dead bytes after each cleaned zone, since the last commit that made bytes dead.
#[derive(Debug, Default)]
pub(crate) struct Gains {
    /// The fewest dead bytes seen; `last`: those after the latest zone.
    least: Option<u64>,
    last: u64,
    /// Zones cleaned since the minimum was reached.
    in_vain: u32,
}

impl Gains {
    /// Records that a zone was cleaned, after which `dead` bytes are dead.
    pub fn cleaned(&mut self, dead: u64) {
        self.last = dead;
        if self.least.is_none_or(|least| dead < least) {
            (self.least, self.in_vain) = (Some(dead), 0);
        } else {
            self.in_vain += 1;
        }
    }

    /// Whether cleaning another zone would be in vain, while `dead` bytes are dead.
    pub fn are_over(&mut self, dead: u64) -> bool {
        if dead > self.last {
            // More is dead without a commit, as the tail of a zone that a put has left.
            *self = Self::default();
        }
        self.in_vain >= PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(gains: &mut Gains, dead: impl Fn(u64) -> u64) -> usize {
        let zones = (0..1000).take_while(|zone| {
            let is_over = gains.are_over(gains.last);
            gains.cleaned(dead(*zone));
            !is_over
        });
        zones.count()
    }

    #[test]
    fn cleaning_ends_where_tails_come_again_and_goes_on_while_there_is_less() {
        let mut gains = Gains::default();
        assert_eq!(cleaned(&mut gains, |zone| [9, 1, 9][zone as usize % 3]), 10);
        assert!(gains.are_over(gains.last));
        assert!(!gains.are_over(10));
        assert_eq!(cleaned(&mut gains, |zone| 4000 - zone - zone % 3 * 2), 1000);
    }
}
