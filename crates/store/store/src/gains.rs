//! Whether there is anything left to gain by cleaning. What is compressed lies in one zone, so where such
//! pieces do not fill zones, each zone that is cleaned may leave as much at the end of another one.

/// So many zones are cleaned in a row before it is taken for vain.
const PATIENCE: u32 = 8;

/// What cleaning has come to since something died last.
#[derive(Debug, Default)]
pub(crate) struct Gains {
    /// The fewest dead bytes that there were, and those behind the last zone.
    least: Option<u64>,
    last: u64,
    /// Zones cleaned since there were as few.
    in_vain: u32,
}

impl Gains {
    /// A zone has been cleaned, and so many bytes are dead now.
    pub fn cleaned(&mut self, dead: u64) {
        self.last = dead;
        if self.least.is_none_or(|least| dead < least) {
            (self.least, self.in_vain) = (Some(dead), 0);
        } else {
            self.in_vain += 1;
        }
    }

    /// Whether another zone would be cleaned in vain, while so many bytes are dead.
    pub fn are_over(&mut self, dead: u64) -> bool {
        if dead > self.last {
            // An upload was given up.
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
