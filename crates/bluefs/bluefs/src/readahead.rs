//! When to read more than was asked for, and how much: a pure function of the reads before.
//!
//! A reader that goes on where it stopped, a few times, gets windows that double up to 2 MiB, in
//! memory of its own; one that jumps gets what it asks for.

/// Reads in order before anything is read ahead.
const STREAK: u32 = 4;
/// So many bytes may be left out between two reads in order.
const GAP: u64 = 16 << 10;
const FIRST_WINDOW: u64 = 64 << 10;
pub(crate) const MAX_WINDOW: u64 = 2 << 20;
/// Whoever asks for as much at once reads ahead already.
const LARGE: u64 = 256 << 10;

/// What is remembered of the reads before.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Sequence {
    /// Where the last one ended.
    next: u64,
    /// How many were in order.
    streak: u32,
    /// How much was read ahead last.
    window: u64,
}

impl Sequence {
    /// After a read of `length` bytes at `offset`.
    pub fn after(self, offset: u64, length: u64) -> Self {
        let next = offset.saturating_add(length);
        if (self.next..=self.next.saturating_add(GAP)).contains(&offset) {
            let streak = self.streak.saturating_add(1);
            Self {
                next,
                streak,
                ..self
            }
        } else {
            let (streak, window) = (0, 0);
            Self {
                next,
                streak,
                window,
            }
        }
    }

    /// Whether what was read ahead may still be of use.
    pub fn goes_on(self) -> bool {
        self.streak > 0
    }

    /// How much to read where `length` bytes are asked for and are not at hand: more than that, or
    /// 0 for no more than that.
    pub fn window(self, length: u64) -> u64 {
        if self.streak < STREAK || length >= LARGE {
            return 0;
        }
        let window = (self.window * 2).clamp(FIRST_WINDOW, MAX_WINDOW);
        window.max(2 * length)
    }

    /// After `window` bytes have been read ahead.
    pub fn ahead(self, window: u64) -> Self {
        Self { window, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What reads of 4 KiB at these offsets get, each with nothing at hand.
    fn windows(offsets: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut sequence = Sequence::default();
        let read = |offset| {
            sequence = sequence.after(offset, 4096);
            let window = sequence.window(4096);
            if window > 0 {
                sequence = sequence.ahead(window);
            }
            window
        };
        offsets.into_iter().map(read).collect()
    }

    #[test]
    fn reads_in_order_get_windows_that_double_up_to_a_limit() {
        let got = windows((0..12).map(|i| i * 4096));
        let kib = |n: u64| n << 10;
        let all = [0, 0, 0, 64, 128, 256, 512, 1024, 2048, 2048, 2048, 2048].map(kib);
        assert_eq!(got, all);
    }

    #[test]
    fn random_and_backward_reads_get_none() {
        assert!(
            windows((0..100).map(|i| i * 7919 % 100 * 65536))
                .iter()
                .all(|w| *w == 0)
        );
        assert!(
            windows((0..100).rev().map(|i| i * 4096))
                .iter()
                .all(|w| *w == 0)
        );
        assert!(windows(std::iter::repeat_n(0, 100)).iter().all(|w| *w == 0));
    }

    #[test]
    fn small_gaps_do_not_break_the_order_and_jumps_begin_anew() {
        assert!(
            windows((0..10).map(|i| i * (4096 + GAP)))
                .iter()
                .skip(4)
                .all(|w| *w > 0)
        );
        assert!(
            windows((0..10).map(|i| i * (4097 + GAP)))
                .iter()
                .all(|w| *w == 0)
        );
        let jump = windows((0..8).map(|i| i * 4096).chain([1 << 30, (1 << 30) + 4096]));
        assert!(jump[7] > 0);
        assert_eq!(jump[8..], [0, 0]);
    }

    #[test]
    fn large_reads_get_none_and_numbers_do_not_overflow() {
        let sequence = (0..8).fold(Sequence::default(), |s, i| s.after(i * LARGE, LARGE));
        assert_eq!(sequence.window(LARGE), 0);
        assert_eq!(sequence.window(100_000), 200_000);
        let last = Sequence::default()
            .after(u64::MAX - 1, 4096)
            .after(u64::MAX, 1);
        assert!(last.goes_on());
    }
}
